use superstep::Routes;

#[derive(Routes)]
enum Next {
    Search(String),
    Write { words: u32 },
    #[route(END)]
    Stop,
}

fn main() {}
