//! x
mod graph; mod script; mod world;
use superstep::*;
#[tokio::main]
async fn main() {
    let saver = MemorySaver::new();
    let app = graph::build(saver).unwrap();
    println!("{}", app.draw().to_terminal());
    println!("{:?}", app.diagnostics());
    let w = world::World::default();
    let mut s = app.stream(graph::Incident::update().alert(script::ALERT)).context(w.clone()).modes([Mode::Custom, Mode::Updates]).thread("t").start();
    while let Some(e) = s.next().await { let e=e.unwrap(); if !matches!(e.data, EventData::Custom(_)) { println!("{:?}", e.data)} }
    println!("{:?}", s.output().map(|o|o.interrupts.clone()));
    let mut s = app.stream(Resume::value(graph::Verdict::Yes)).context(w.clone()).modes([Mode::Custom, Mode::Updates]).thread("t").start();
    let t = std::time::Instant::now();
    while t.elapsed().as_millis() < 1100 { let Some(e)=s.next().await else {break}; let e=e.unwrap(); if !matches!(e.data, EventData::Custom(_)) { println!("{:?}", e.data)} }
    drop(s);
    w.next_process();
    let mut s = app.stream(GoOn).context(w.clone()).modes([Mode::Custom, Mode::Updates]).thread("t").start();
    while let Some(e) = s.next().await { let e=e.unwrap(); if !matches!(e.data, EventData::Custom(_)) { println!("{:?}", e.data)} }
    println!("{:?}", w.tools());
    for h in app.thread("t").history().await.unwrap() { println!("{:?} {:?} {:?} {:?}", h.step, h.source, h.next, h.tasks.iter().map(|t| t.result().is_some()).collect::<Vec<_>>()) }
}
