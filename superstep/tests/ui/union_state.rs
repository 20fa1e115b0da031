use superstep::State;

#[derive(State, Clone, Copy)]
union Bits {
    whole: u32,
    bytes: [u8; 4],
}

fn main() {}
