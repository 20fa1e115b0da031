//! Drawings as Mermaid.

use std::collections::BTreeSet;

use superstep::Drawing;

use super::{agent_loop, branch, chain, check, edge, fan, groups, hostile, nodes};

#[test]
fn a_chain_goes_straight_down_in_mermaid() {
    check(
        &chain().to_mermaid(),
        "
        ---
        config:
          flowchart:
            curve: linear
        ---
        graph TD;
          __start__([<p>__start__</p>]):::first
          plan(plan)
          act(act)
          __end__([<p>__end__</p>]):::last
          __start__ --> plan;
          plan --> act;
          act --> __end__;
          classDef default fill:#f2f0ff,line-height:1.2
          classDef first fill-opacity:0
          classDef last fill:#bfb6fc
    ",
    );
}

#[test]
fn branches_bear_their_labels_in_mermaid() {
    check(
        &branch().to_mermaid(),
        "
        ---
        config:
          flowchart:
            curve: linear
        ---
        graph TD;
          __start__([<p>__start__</p>]):::first
          route(route)
          search(search)
          answer(answer)
          __end__([<p>__end__</p>]):::last
          __start__ --> route;
          route -. &nbsp;needs facts&nbsp; .-> search;
          route -. &nbsp;knows&nbsp; .-> answer;
          search --> __end__;
          answer --> __end__;
          classDef default fill:#f2f0ff,line-height:1.2
          classDef first fill-opacity:0
          classDef last fill:#bfb6fc
    ",
    );
}

#[test]
fn a_loop_returns_at_the_side_in_mermaid() {
    check(
        &agent_loop().to_mermaid(),
        "
        ---
        config:
          flowchart:
            curve: linear
        ---
        graph TD;
          __start__([<p>__start__</p>]):::first
          agent(agent)
          tools(tools)
          __end__([<p>__end__</p>]):::last
          __start__ --> agent;
          agent -. &nbsp;continue&nbsp; .-> tools;
          agent -. &nbsp;end&nbsp; .-> __end__;
          tools --> agent;
          classDef default fill:#f2f0ff,line-height:1.2
          classDef first fill-opacity:0
          classDef last fill:#bfb6fc
    ",
    );
}

#[test]
fn a_fan_out_joins_again_in_mermaid() {
    check(
        &fan().to_mermaid(),
        "
        ---
        config:
          flowchart:
            curve: linear
        ---
        graph TD;
          __start__([<p>__start__</p>]):::first
          plan(plan)
          web(web)
          mail(mail)
          files(files)
          join(join<hr/><small><em>defer = True</em></small>)
          __end__([<p>__end__</p>]):::last
          __start__ --> plan;
          join --> __end__;
          plan --> web;
          plan --> mail;
          plan --> files;
          web --> join;
          mail --> join;
          files --> join;
          classDef default fill:#f2f0ff,line-height:1.2
          classDef first fill-opacity:0
          classDef last fill:#bfb6fc
    ",
    );
}

#[test]
fn groups_are_framed_in_mermaid() {
    check(
        &groups().to_mermaid(),
        r"
        ---
        config:
          flowchart:
            curve: linear
        ---
        graph TD;
          __start__([<p>__start__</p>]):::first
          ask(ask)
          tell(tell)
          __end__([<p>__end__</p>]):::last
          __start__ --> ask;
          ask --> team\3alead;
          team\3alab\3afix -.-> tell;
          tell --> __end__;
          subgraph team
          team\3alead(lead)
          team\3alead --> team\3alab\3atest;
          subgraph lab
          team\3alab\3atest(test)
          team\3alab\3afix(fix)
          team\3alab\3atest --> team\3alab\3afix;
          team\3alab\3afix -.-> team\3alab\3atest;
          end
          end
          classDef default fill:#f2f0ff,line-height:1.2
          classDef first fill-opacity:0
          classDef last fill:#bfb6fc
    ",
    );
}

#[test]
fn hostile_names_stay_names_in_mermaid() {
    check(
        &hostile().to_mermaid(),
        r#"
        ---
        config:
          flowchart:
            curve: linear
        ---
        graph TD;
          say\20\22hi\22\5d(["say #quot;hi#quot;#93;"]):::first
          a\_a_b\3b\1b\5b31m("a<br/>b#59; #91;31m")
          back\5c("back#92;")
          say\20\22hi\22\5d -- &nbsp;#45;#45;#62; #quot;x#quot; #124; #60;b#62;&nbsp; --> a\_a_b\3b\1b\5b31m;
          say\20\22hi\22\5d --> back\5c;
          classDef default fill:#f2f0ff,line-height:1.2
          classDef first fill-opacity:0
          classDef last fill:#bfb6fc
    "#,
    );
}

#[test]
fn groups_with_the_same_title_stay_apart_in_mermaid() {
    let drawing = Drawing::new(nodes("a:team:x b:team:y"), [edge("a:team:x", "b:team:y")]);
    check(
        &drawing.to_mermaid(),
        r#"
        ---
        config:
          flowchart:
            curve: linear
        ---
        graph TD;
          a\3ateam\3ax --> b\3ateam\3ay;
          subgraph a
          subgraph team
          a\3ateam\3ax([x]):::first
          end
          end
          subgraph b
          subgraph b\3ateam\3a["team"]
          b\3ateam\3ay([y]):::last
          end
          end
          classDef default fill:#f2f0ff,line-height:1.2
          classDef first fill-opacity:0
          classDef last fill:#bfb6fc
    "#,
    );
}

#[test]
fn words_of_mermaid_can_be_names() {
    let drawing = Drawing::new(nodes("end x end:x"), [edge("end", "x"), edge("x", "end:x")]);
    check(
        &drawing.to_mermaid(),
        r#"
        ---
        config:
          flowchart:
            curve: linear
        ---
        graph TD;
          \65nd(["end"]):::first
          x(x)
          \65nd --> x;
          x --> end\3ax;
          subgraph end\3a["end"]
          end\3ax([x]):::last
          end
          classDef default fill:#f2f0ff,line-height:1.2
          classDef first fill-opacity:0
          classDef last fill:#bfb6fc
    "#,
    );
}

#[test]
fn ids_that_differ_stay_different_in_mermaid() {
    let ids = ["a:a", "a\u{3aa}", "a\nb", "a\u{ab}", "a\\_ab_"];
    let drawn: BTreeSet<String> = ids
        .iter()
        .map(|id| Drawing::new([], [edge(id, "to").label("x")]).to_mermaid())
        .map(|text| text.lines().find(|line| line.contains("nbsp")).unwrap_or_default().to_owned())
        .collect();
    assert_eq!(drawn.len(), ids.len(), "{drawn:#?}");
}
