//! Drawings, judged by their text.

use std::collections::BTreeSet;

use superstep::{Drawing, DrawnEdge, DrawnNode};

mod follow;

/// Compares a drawing with the text expected. That text is indented as the test is; tabs are shown as two spaces.
#[track_caller]
fn check(drawn: &str, expected: &str) {
    let lines: Vec<&str> = expected.trim_start_matches('\n').trim_end().lines().collect();
    let indent = lines.iter().filter(|line| !line.is_empty()).map(|line| line.len() - line.trim_start().len()).min();
    let expected: Vec<&str> = lines.iter().map(|line| line.get(indent.unwrap_or(0)..).unwrap_or("")).collect();
    let drawn = drawn.replace('\t', "  ");
    assert_eq!(drawn.trim_end(), expected.join("\n"), "\n{drawn}");
}

fn nodes(ids: &str) -> Vec<DrawnNode> {
    ids.split(' ').map(DrawnNode::new).collect()
}

fn edge(from: &str, to: &str) -> DrawnEdge {
    DrawnEdge::new(from, to)
}

fn maybe(from: &str, to: &str) -> DrawnEdge {
    DrawnEdge::new(from, to).conditional()
}

fn chain() -> Drawing {
    Drawing::new(
        nodes("__start__ plan act __end__"),
        [edge("__start__", "plan"), edge("plan", "act"), edge("act", "__end__")],
    )
}

fn branch() -> Drawing {
    let edges = [
        edge("__start__", "route"),
        maybe("route", "search").label("needs facts"),
        maybe("route", "answer").label("knows"),
        edge("search", "__end__"),
        edge("answer", "__end__"),
    ];
    Drawing::new(nodes("__start__ route search answer __end__"), edges)
}

fn agent_loop() -> Drawing {
    let edges = [
        edge("__start__", "agent"),
        maybe("agent", "tools").label("continue"),
        maybe("agent", "__end__").label("end"),
        edge("tools", "agent"),
    ];
    Drawing::new(nodes("__start__ agent tools __end__"), edges)
}

fn fan() -> Drawing {
    let workers = ["web", "mail", "files"];
    let out = workers.map(|worker| edge("plan", worker));
    let back = workers.map(|worker| edge(worker, "join"));
    let ends = [edge("__start__", "plan"), edge("join", "__end__")];
    let mut all = nodes("__start__ plan web mail files join __end__");
    all[5] = DrawnNode::new("join").metadata("defer", true);
    Drawing::new(all, ends.into_iter().chain(out).chain(back))
}

fn groups() -> Drawing {
    let edges = [
        edge("__start__", "ask"),
        edge("ask", "team:lead"),
        edge("team:lead", "team:lab:test"),
        edge("team:lab:test", "team:lab:fix"),
        maybe("team:lab:fix", "team:lab:test"),
        maybe("team:lab:fix", "tell"),
        edge("tell", "__end__"),
    ];
    Drawing::new(nodes("__start__ ask team:lead team:lab:test team:lab:fix tell __end__"), edges)
}

fn hostile() -> Drawing {
    let all = ["say \"hi\"]", "a\nb;\u{1b}[31m", "back\\"].map(DrawnNode::new);
    let edges = [edge("say \"hi\"]", "a\nb;\u{1b}[31m").label("--> \"x\" | <b>"), edge("say \"hi\"]", "back\\")];
    Drawing::new(all, edges)
}

#[test]
fn a_chain_goes_straight_down_in_terminal() {
    check(
        &chain().to_terminal(),
        "
        ╭───────────╮
        │ __start__ │
        ╰─────┬─────╯
              │
              ▼
          ╭──────╮
          │ plan │
          ╰───┬──╯
              │
              ▼
           ╭─────╮
           │ act │
           ╰──┬──╯
              │
              ▼
         ╭─────────╮
         │ __end__ │
         ╰─────────╯
    ",
    );
}

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
fn a_chain_goes_straight_down_in_dot() {
    check(
        &chain().to_dot(),
        r##"
        digraph {
          node [shape=box, style="rounded,filled", fillcolor="#f2f0ff", fontname="Helvetica"];
          edge [fontname="Helvetica", fontsize=11];
          "__start__" [label="__start__", shape=oval, fillcolor="#ffffff"];
          "plan" [label="plan"];
          "act" [label="act"];
          "__end__" [label="__end__", shape=oval, fillcolor="#bfb6fc"];
          "__start__" -> "plan";
          "plan" -> "act";
          "act" -> "__end__";
        }
    "##,
    );
}

#[test]
fn branches_bear_their_labels_in_terminal() {
    check(
        &branch().to_terminal(),
        "
              ╭───────────╮
              │ __start__ │
              ╰─────┬─────╯
                    │
                    ▼
                ╭───────╮
                │ route │
                ╰───┬───╯
              ╭╌╌╌╌╌┴╌╌╌╌╮
         needs facts   knows
              ▼          ▼
        ╭────────╮   ╭────────╮
        │ search │   │ answer │
        ╰────┬───╯   ╰────┬───╯
             ╰──────┬─────╯
                    ▼
               ╭─────────╮
               │ __end__ │
               ╰─────────╯
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
fn branches_bear_their_labels_in_dot() {
    check(
        &branch().to_dot(),
        r##"
        digraph {
          node [shape=box, style="rounded,filled", fillcolor="#f2f0ff", fontname="Helvetica"];
          edge [fontname="Helvetica", fontsize=11];
          "__start__" [label="__start__", shape=oval, fillcolor="#ffffff"];
          "route" [label="route"];
          "search" [label="search"];
          "answer" [label="answer"];
          "__end__" [label="__end__", shape=oval, fillcolor="#bfb6fc"];
          "__start__" -> "route";
          "route" -> "search" [style=dashed, label="needs facts"];
          "route" -> "answer" [style=dashed, label="knows"];
          "search" -> "__end__";
          "answer" -> "__end__";
        }
    "##,
    );
}

#[test]
fn a_loop_returns_at_the_side_in_terminal() {
    check(
        &agent_loop().to_terminal(),
        "
            ╭───────────╮
            │ __start__ │
            ╰─────┬─────╯
                  │
                  ▼
              ╭───────╮
              │ agent │◀─────╮
              ╰───┬───╯      │
             ╭╌╌╌╌┴╌╌╌╮      │
            end   continue   │
             ┆        ▼      │
             ┆    ╭───────╮  │
             ┆    │ tools ├──╯
             ┆    ╰───────╯
             ┆
             ▼
        ╭─────────╮
        │ __end__ │
        ╰─────────╯
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
fn a_loop_returns_at_the_side_in_dot() {
    check(
        &agent_loop().to_dot(),
        r##"
        digraph {
          node [shape=box, style="rounded,filled", fillcolor="#f2f0ff", fontname="Helvetica"];
          edge [fontname="Helvetica", fontsize=11];
          "__start__" [label="__start__", shape=oval, fillcolor="#ffffff"];
          "agent" [label="agent"];
          "tools" [label="tools"];
          "__end__" [label="__end__", shape=oval, fillcolor="#bfb6fc"];
          "__start__" -> "agent";
          "agent" -> "tools" [style=dashed, label="continue"];
          "agent" -> "__end__" [style=dashed, label="end"];
          "tools" -> "agent";
        }
    "##,
    );
}

#[test]
fn a_fan_out_joins_again_in_terminal() {
    check(
        &fan().to_terminal(),
        "
                ╭───────────╮
                │ __start__ │
                ╰─────┬─────╯
                      │
                      ▼
                  ╭──────╮
                  │ plan │
                  ╰───┬──╯
           ╭──────────┼──────────╮
           ▼          ▼          ▼
        ╭─────╮   ╭──────╮   ╭───────╮
        │ web │   │ mail │   │ files │
        ╰──┬──╯   ╰───┬──╯   ╰───┬───╯
           ╰──────────┼──────────╯
                      ▼
              ╭──────────────╮
              │     join     │
              │ defer = True │
              ╰───────┬──────╯
                      │
                      ▼
                 ╭─────────╮
                 │ __end__ │
                 ╰─────────╯
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
fn a_fan_out_joins_again_in_dot() {
    check(
        &fan().to_dot(),
        r##"
        digraph {
          node [shape=box, style="rounded,filled", fillcolor="#f2f0ff", fontname="Helvetica"];
          edge [fontname="Helvetica", fontsize=11];
          "__start__" [label="__start__", shape=oval, fillcolor="#ffffff"];
          "plan" [label="plan"];
          "web" [label="web"];
          "mail" [label="mail"];
          "files" [label="files"];
          "join" [label="join\ndefer = True"];
          "__end__" [label="__end__", shape=oval, fillcolor="#bfb6fc"];
          "__start__" -> "plan";
          "join" -> "__end__";
          "plan" -> "web";
          "plan" -> "mail";
          "plan" -> "files";
          "web" -> "join";
          "mail" -> "join";
          "files" -> "join";
        }
    "##,
    );
}

#[test]
fn groups_are_framed_in_terminal() {
    check(
        &groups().to_terminal(),
        "
             ╭───────────╮
             │ __start__ │
             ╰─────┬─────╯
                   │
                   ▼
                ╭─────╮
                │ ask │
                ╰──┬──╯
                   │
        ┏━ team ━━━┿━━━━━━━━━━━┓
        ┃          ▼           ┃
        ┃      ╭──────╮        ┃
        ┃      │ lead │        ┃
        ┃      ╰───┬──╯        ┃
        ┃          │           ┃
        ┃  ┏━ lab ━┿━━━━━━━━┓  ┃
        ┃  ┃       ▼        ┃  ┃
        ┃  ┃   ╭──────╮     ┃  ┃
        ┃  ┃   │ test │◀╌╮  ┃  ┃
        ┃  ┃   ╰───┬──╯  ┆  ┃  ┃
        ┃  ┃       │     ┆  ┃  ┃
        ┃  ┃       ▼     ┆  ┃  ┃
        ┃  ┃    ╭─────╮  ┆  ┃  ┃
        ┃  ┃    │ fix ├╌╌╯  ┃  ┃
        ┃  ┃    ╰──┬──╯     ┃  ┃
        ┃  ┃       ┆        ┃  ┃
        ┃  ┗━━━━━━━┿━━━━━━━━┛  ┃
        ┃          ┆           ┃
        ┗━━━━━━━━━━┿━━━━━━━━━━━┛
                   ┆
                   ▼
               ╭──────╮
               │ tell │
               ╰───┬──╯
                   │
                   ▼
              ╭─────────╮
              │ __end__ │
              ╰─────────╯
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
fn groups_are_framed_in_dot() {
    check(
        &groups().to_dot(),
        r##"
        digraph {
          node [shape=box, style="rounded,filled", fillcolor="#f2f0ff", fontname="Helvetica"];
          edge [fontname="Helvetica", fontsize=11];
          "__start__" [label="__start__", shape=oval, fillcolor="#ffffff"];
          "ask" [label="ask"];
          "tell" [label="tell"];
          "__end__" [label="__end__", shape=oval, fillcolor="#bfb6fc"];
          subgraph "cluster_team" {
            label="team"; style=rounded;
            "team:lead" [label="lead"];
            subgraph "cluster_team:lab" {
              label="lab"; style=rounded;
              "team:lab:test" [label="test"];
              "team:lab:fix" [label="fix"];
            }
          }
          "__start__" -> "ask";
          "ask" -> "team:lead";
          "team:lead" -> "team:lab:test";
          "team:lab:test" -> "team:lab:fix";
          "team:lab:fix" -> "team:lab:test" [style=dashed];
          "team:lab:fix" -> "tell" [style=dashed];
          "tell" -> "__end__";
        }
    "##,
    );
}

#[test]
fn hostile_names_stay_names_in_terminal() {
    check(
        &hostile().to_terminal(),
        r#"
                   ╭───────────╮
                   │ say "hi"] │
                   ╰─────┬─────╯
                     ╭───┴────╮
               --> "x" | <b>  │
                     │        ╰───╮
                     ▼            ▼
        ╭─────────────────╮   ╭───────╮
        │ a\nb;\u{1b}[31m │   │ back\ │
        ╰─────────────────╯   ╰───────╯
    "#,
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
fn hostile_names_stay_names_in_dot() {
    check(
        &hostile().to_dot(),
        r##"
        digraph {
          node [shape=box, style="rounded,filled", fillcolor="#f2f0ff", fontname="Helvetica"];
          edge [fontname="Helvetica", fontsize=11];
          "say \"hi\"]" [label="say \"hi\"]"];
          "a\nb;\u{1b}[31m" [label="a\\nb;\\u{1b}[31m"];
          "back\\" [label="back\\"];
          "say \"hi\"]" -> "a\nb;\u{1b}[31m" [label="--> \"x\" | <b>"];
          "say \"hi\"]" -> "back\\";
        }
    "##,
    );
}

#[test]
fn supervisor_and_workers_share_one_way_back() {
    let workers = ["search", "code", "write"];
    let out = workers.map(|worker| maybe("boss", worker));
    let back = workers.map(|worker| edge(worker, "boss"));
    let ends = [edge("__start__", "boss"), maybe("boss", "__end__")];
    let drawing =
        Drawing::new(nodes("__start__ boss search code write __end__"), ends.into_iter().chain(out).chain(back));
    check(
        &drawing.to_terminal(),
        "
                ╭───────────╮
                │ __start__ │
                ╰─────┬─────╯
                      │
                      ▼
                  ╭──────╮
                  │ boss │◀───────────────────────╮
                  ╰───┬──╯                        │
             ╭╌╌╌╌╌╌╌╌┼╌╌╌╌╌╌╌╌╌┬╌╌╌╌╌╌╌╌╌╌╮      │
             ┆        ▼         ▼          ▼      │
             ┆ ╭────────╮   ╭──────╮   ╭───────╮  │
             ┆ │ search │   │ code │   │ write │  │
             ┆ ╰────┬───╯   ╰───┬──╯   ╰───┬───╯  │
             ┆      ╰───────────┴──────────┴──────╯
             ▼
        ╭─────────╮
        │ __end__ │
        ╰─────────╯
    ",
    );
}

#[test]
fn a_node_that_leads_to_itself_has_a_loop_at_its_side() {
    let edges = [maybe("poll", "poll").label("wait"), maybe("poll", "done")];
    check(
        &Drawing::new(nodes("poll done"), edges).to_terminal(),
        "
        ╭──────╮
        │ poll │◀╌╌╌╮
        ╰───┬─┬╯  wait
            ┆ ╰╌╌╌╌╌╯
            ▼
        ╭──────╮
        │ done │
        ╰──────╯
    ",
    );
}

#[test]
fn lines_that_cross_are_not_joined() {
    let edges = [
        edge("a", "b"),
        edge("a", "c"),
        maybe("b", "f"),
        edge("c", "e"),
        edge("c", "f"),
        edge("b", "e"),
        edge("a", "e"),
    ];
    check(
        &Drawing::new(nodes("a b c e f"), edges).to_terminal(),
        "
         ╭───╮
         │ a │
         ╰┬─┬╯
        ╭─╯ ├───────╮
        │   ▼       ▼
        │ ╭───╮   ╭───╮
        │ │ b │   │ c │
        │ ╰┬─┬╯   ╰┬─┬╯
        ╰─┬┴─┆─────╯ │
          │  ╰╌╌╌╮ ╭─╯
          ▼      ▼ ▼
        ╭───╮   ╭───╮
        │ e │   │ f │
        ╰───╯   ╰───╯
    ",
    );
}

#[test]
fn wide_characters_take_two_cells() {
    let edges = [maybe("分析", "書く").label("はい")];
    check(
        &Drawing::new(nodes("分析 書く"), edges).to_terminal(),
        "
        ╭──────╮
        │ 分析 │
        ╰───┬──╯
            ┆
          はい
            ▼
        ╭──────╮
        │ 書く │
        ╰──────╯
    ",
    );
}

#[test]
fn an_edge_to_a_node_not_listed_is_drawn() {
    let drawing = Drawing::new(nodes("a"), [edge("a", "ghost")]);
    check(
        &drawing.to_terminal(),
        "
          ╭───╮
          │ a │
          ╰─┬─╯
            │
            ▼
        ╭───────╮
        │ ghost │
        ╰───────╯
    ",
    );
}

#[test]
fn nothing_is_drawn_as_nothing() {
    check(&Drawing::default().to_terminal(), "");
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

#[test]
fn colours_change_no_character() {
    for drawing in [chain(), branch(), agent_loop(), fan(), groups(), hostile()] {
        let mut plain = String::new();
        let colored = drawing.to_terminal_colored();
        for (ix, part) in colored.split("\u{1b}[").enumerate() {
            plain.push_str(if ix == 0 { part } else { part.split_once('m').map_or("", |(_, rest)| rest) });
        }
        assert_eq!(plain, drawing.to_terminal());
    }
}

/// The drawing is read back with no knowledge of the graph but the names of its nodes.
#[test]
fn every_edge_can_be_followed_in_the_drawing() {
    for seed in 0..1000 {
        let drawing = random_drawing(seed);
        let text = drawing.to_terminal();
        let name = |id: &str| id.rsplit(':').next().unwrap_or(id).to_owned();
        let expected: BTreeSet<(String, String)> =
            drawing.edges.iter().map(|edge| (name(&edge.from), name(&edge.to))).collect();
        let names: Vec<String> = drawing.nodes.iter().map(|node| node.label.clone()).collect();
        let followed = follow::edges(&text, &names).unwrap_or_else(|why| panic!("seed {seed}: {why}\n{text}"));
        assert_eq!(followed, expected, "seed {seed}\n{text}");
        for label in drawing.edges.iter().filter_map(|edge| edge.label.as_deref()) {
            assert!(text.contains(label), "seed {seed}: no label {label}\n{text}");
        }
    }
}

fn random_drawing(seed: u64) -> Drawing {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    let node_count = 1 + below(if seed.is_multiple_of(10) { 20 } else { 10 });
    let id = |ix: usize, group: usize| match group {
        0 | 1 if seed.is_multiple_of(3) => format!("g:n{ix:02}"),
        2 if seed.is_multiple_of(3) => format!("g:h:n{ix:02}"),
        3 if seed.is_multiple_of(3) => format!("k:n{ix:02}"),
        _ => format!("n{ix:02}"),
    };
    let ids: Vec<String> = (0..node_count).map(|ix| id(ix, below(6))).collect();
    let mut edges = Vec::new();
    for ix in 0..below(2 * node_count + 1) {
        let mut edge = DrawnEdge::new(&ids[below(node_count)], &ids[below(node_count)]);
        edge.conditional = below(3) == 0;
        edge.label = (below(4) == 0).then(|| format!("L{}{ix}", "x".repeat(below(6))));
        edges.push(edge);
    }
    Drawing::new(ids.iter().map(DrawnNode::new), edges)
}

#[cfg(feature = "svg")]
#[test]
fn a_hostile_name_stays_text_in_svg() {
    let svg = hostile().to_svg();
    assert!(svg.contains(">say &quot;hi&quot;]</text>"), "{svg}");
    assert!(svg.contains(r"a\nb;\u{1b}[31m"), "{svg}");
    assert!(!svg.contains("<b>") && !svg.contains('\u{1b}'), "{svg}");
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
}

#[cfg(feature = "svg")]
#[test]
fn svg_dashes_conditional_edges_only() {
    assert_eq!(chain().to_svg().matches("stroke-dasharray").count(), 0);
    assert_ne!(branch().to_svg().matches("stroke-dasharray").count(), 0);
}

#[cfg(feature = "png")]
mod png {
    use superstep::{DrawError, Drawing, DrawnNode};

    use super::{agent_loop, branch};

    /// The pixels of a PNG picture that are dark, counted. Text is the only dark thing in a picture.
    fn dark_pixels(png: &[u8]) -> usize {
        let image = resvg::tiny_skia::Pixmap::decode_png(png).expect("a picture");
        image.pixels().iter().filter(|pixel| pixel.red() < 90 && pixel.green() < 90 && pixel.blue() < 90).count()
    }

    #[test]
    fn labels_leave_ink_without_any_font() {
        let labelled = dark_pixels(&branch().to_png(2.0).unwrap());
        let mut blank = branch();
        blank.nodes.iter_mut().for_each(|node| node.label = " ".repeat(node.label.len()));
        blank.edges.iter_mut().for_each(|edge| edge.label = None);
        assert_eq!(dark_pixels(&blank.to_png(2.0).unwrap()), 0);
        assert!(labelled > 1000, "only {labelled} dark pixels");
    }

    #[test]
    fn every_ascii_letter_and_any_other_leaves_ink() {
        for c in ('!'..='~').chain("éÅñ→日🎉".chars()) {
            let drawing = Drawing::new([DrawnNode::new("x").label(c)], []);
            assert!(dark_pixels(&drawing.to_png(3.0).unwrap()) > 0, "no ink for `{c}`");
        }
    }

    #[test]
    fn the_scale_is_the_scale_of_the_pixels() {
        let size = |scale| {
            let image = resvg::tiny_skia::Pixmap::decode_png(&agent_loop().to_png(scale).unwrap()).unwrap();
            (image.width(), image.height())
        };
        let (width, height) = size(1.0);
        assert_eq!(size(3.0), (3 * width, 3 * height));
    }

    #[test]
    fn a_scale_that_makes_no_picture_is_refused() {
        assert!(matches!(agent_loop().to_png(f32::NAN), Err(DrawError::Scale { .. })));
        assert!(matches!(agent_loop().to_png(-1.0), Err(DrawError::Scale { .. })));
        assert!(matches!(agent_loop().to_png(1e6), Err(DrawError::Size { .. })));
    }
}
