use superstep::Routes;

#[derive(Routes)]
enum Next {
    #[route("__start__")]
    Again,
    #[route("__end__")]
    Stop,
    #[route("sub:graph")]
    Into,
    __Hidden,
}

fn main() {}
