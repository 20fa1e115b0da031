//! What can be wrong with a team.

use superstep::CompilationError;

/// All that is wrong with a team.
///
/// ```
/// use superstep_agent::{team::{Swarm, TeamMistake}, ReactState};
/// let error = Swarm::<ReactState>::new().compile().err().unwrap();
/// assert!(matches!(error.mistakes(), [TeamMistake::Empty]));
/// assert_eq!(error.to_string(), "a team needs an agent; add one with `agent`");
/// ```
#[derive(thiserror::Error)]
#[error("{}", in_words(.mistakes))]
pub struct TeamError {
    mistakes: Vec<TeamMistake>,
}

/// One thing that is wrong with a team.
///
/// ```
/// use superstep_agent::team::TeamMistake;
/// assert_eq!(TeamMistake::Unnamed.to_string(), "an agent of the team has no name; give it one with `name` before it is compiled");
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum TeamMistake {
    /// There is nobody in it.
    #[error("a team needs an agent; add one with `agent`")]
    Empty,
    /// An agent has no name.
    #[error("an agent of the team has no name; give it one with `name` before it is compiled")]
    Unnamed,
    /// Two agents have the same name, or names that make the same name of a tool.
    #[error("two agents of the team are called `{name}`, or nearly so; give one of them another name")]
    SameName {
        /// The name.
        name: String,
    },
    /// The agent that is to begin is not there.
    #[error("no agent of the team is called `{name}`, which is to begin; there are {known:?}")]
    UnknownStart {
        /// The name.
        name: String,
        /// The agents that are there.
        known: Vec<String>,
    },
    /// The graph has mistakes.
    #[error(transparent)]
    Graph(#[from] CompilationError),
}

shown_in_words!(TeamError, TeamMistake);

impl TeamError {
    /// All mistakes.
    pub fn mistakes(&self) -> &[TeamMistake] {
        &self.mistakes
    }

    pub(super) fn unless_empty(mistakes: Vec<TeamMistake>) -> Result<(), Self> {
        if mistakes.is_empty() { Ok(()) } else { Err(Self { mistakes }) }
    }
}

impl From<CompilationError> for TeamError {
    fn from(error: CompilationError) -> Self {
        Self { mistakes: vec![error.into()] }
    }
}

fn in_words(mistakes: &[TeamMistake]) -> String {
    mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
