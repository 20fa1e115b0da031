//! Drawings for a terminal.

use superstep::{Drawing, DrawnNode};

use super::{agent_loop, branch, chain, check, edge, fan, groups, hostile, maybe, nodes};

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

#[test]
fn a_node_may_be_put_into_other_groups_than_its_id_names() {
    let frames = |drawing: &Drawing| drawing.to_terminal().matches("team").count();
    let plain = Drawing::new([DrawnNode::new("lead"), DrawnNode::new("lab:test")], [edge("lead", "lab:test")]);
    assert_eq!(frames(&plain), 0);
    let named = [DrawnNode::new("lead").group(["team"]), DrawnNode::new("lab:test").group(Vec::<String>::new())];
    let grouped = Drawing::new(named, [edge("lead", "lab:test")]);
    assert_eq!(frames(&grouped), 1);
    assert!(plain.to_terminal().contains("lab") && !grouped.to_terminal().contains("lab"), "{}", grouped.to_terminal());
}
