//! Drawings as DOT.

use super::{agent_loop, branch, chain, check, fan, groups, hostile};

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
