//! The trait forms of nodes: `Node` with `Next`, and agents as nodes.

use std::sync::Arc;

use async_trait::async_trait;

use super::{FromInput, IntoOutcome, Outcome};
use crate::call::{Call, Context, Next};
use crate::error::BoxError;
use crate::message::{Message, Role, add_messages};
use crate::state::{AgentState, Given, IntoUpdate, State};
use crate::value::Payload;

/// A node as a type: it has a name, takes the state and gives it back changed.
///
/// Functions are simpler; this form suits nodes that carry data of their own. The state that it gives back counts for what
/// it [changed](State::difference) in the one that it was given, so nothing is lost of what nodes beside it write.
/// Every [`Agent`] is a node, and so are `Box<dyn Node<S>>` and `Arc<dyn Node<S>>`.
///
/// ```
/// use async_trait::async_trait;
/// use superstep::{AgentState, BoxError, Message, Next, Node, StateGraph, START};
///
/// struct Greet { name: String }
///
/// #[async_trait]
/// impl Node<AgentState> for Greet {
///     fn id(&self) -> &str { "greet" }
///     async fn run(&self, mut state: AgentState) -> Result<(AgentState, Next), BoxError> {
///         state.messages.push(Message::assistant(format!("hello, {}", self.name)));
///         Ok((state, Next::Continue))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::<AgentState>::new()
///     .add_node("greet", Greet { name: "Ada".into() })
///     .add_edge(START, "greet")
///     .compile()?;
/// assert_eq!(app.invoke(()).await?.state.messages.len(), 1);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Node<S: State>: Send + Sync + 'static {
    /// The node's own name, used by [`StateGraph::add`](crate::StateGraph::add).
    fn id(&self) -> &str;

    /// One step: the state in, the state out, and how to go on.
    ///
    /// # Errors
    /// Whatever went wrong; it fails the run unless the node has a retry or a handler.
    async fn run(&self, state: S) -> Result<(S, Next), BoxError>;

    /// What a graph calls: [`run`](Node::run) on the state, unless the node needs its context or what it was sent.
    ///
    /// # Errors
    /// As those of `run`.
    async fn call(&self, input: NodeInput<S>, _cx: Context) -> Result<Outcome<S>, BoxError>
    where
        S: State<Schema = ()>,
    {
        let given = input.given()?;
        let (state, next) = self.run(S::clone(&given)).await?;
        Ok((IntoUpdate::into_update(state), next).into_outcome()?.against(&given, &()))
    }

    /// What is wrong with how it was made, each with the way out; [`compile`](crate::StateGraph::compile) reports them as
    /// [`BuildError::BadOption`](crate::BuildError::BadOption), with the node's name.
    fn mistakes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether it may say where to go; for diagnostics.
    #[doc(hidden)]
    fn steers(&self) -> bool {
        true
    }
}

/// What a graph gives to a [`Node`]: the state, and what it was sent if it was reached by a [`Send`](crate::Send).
///
/// ```
/// use async_trait::async_trait;
/// use superstep::{AgentState, BoxError, Context, IntoOutcome, Message, Next, Node, NodeInput, Outcome};
///
/// struct Answers;
///
/// #[async_trait]
/// impl Node<AgentState> for Answers {
///     fn id(&self) -> &str { "answers" }
///     async fn run(&self, state: AgentState) -> Result<(AgentState, Next), BoxError> { Ok((state, Next::Continue)) }
///     async fn call(&self, input: NodeInput<AgentState>, cx: Context) -> Result<Outcome<AgentState>, BoxError> {
///         let question: String = input.sent.ok_or("send it a question")?.get()?;
///         vec![Message::assistant(format!("{question}? In step {}!", cx.step()))].into_outcome()
///     }
/// }
/// # use superstep::{Send, StateGraph, START};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let app = StateGraph::<AgentState>::new().add_node("answers", Answers)
/// #     .add_conditional_edges(START, |_: &AgentState| Send::new("answers", "now")).compile()?;
/// # assert_eq!(app.invoke(()).await?.state.messages[0].text(), "now? In step 1!");
/// # Ok(())
/// # }
/// ```
pub struct NodeInput<S: State> {
    /// The state at the beginning of the step.
    pub state: Arc<S>,
    /// What it was sent.
    pub sent: Option<Payload>,
    given: Result<Arc<S>, String>,
}

crate::debug::debug_parts!([S: State] NodeInput<S>, "NodeInput", this => { sent: this.sent });

impl<S: State> NodeInput<S> {
    pub(super) fn of(call: &Call<'_>) -> Result<Self, BoxError> {
        let given = <Arc<S> as FromInput<S>>::from_input(call).map_err(|error| error.to_string());
        match (call.input, call.state) {
            (Given::State(state), _) => Ok(Self { state: state.share(), sent: None, given }),
            (Given::Sent(payload), Some(state)) => {
                Ok(Self { state: state.share(), sent: Some(payload.clone()), given })
            }
            (Given::Sent(_), None) => Err(given.err().unwrap_or_default().into()),
        }
    }

    /// The state that the node runs on: the one of the step, or the one that it was sent.
    ///
    /// # Errors
    /// If it was sent something that is no state.
    pub fn given(&self) -> Result<Arc<S>, BoxError> {
        self.given.clone().map_err(Into::into)
    }
}

/// A node as a type that takes and returns what functions can, its context included.
///
/// ```
/// use std::sync::Arc;
/// use async_trait::async_trait;
/// use superstep::{AgentState, AgentStateUpdate, BoxError, Context, Message, StateGraph, StateNode, START};
///
/// struct Greet { name: String }
///
/// #[async_trait]
/// impl StateNode<AgentState> for Greet {
///     type Input = Arc<AgentState>;
///     type Output = AgentStateUpdate;
///     async fn run(&self, _: Arc<AgentState>, cx: Context) -> Result<AgentStateUpdate, BoxError> {
///         let greeting = Message::assistant(format!("hello, {}, in step {}", self.name, cx.step()));
///         Ok(AgentStateUpdate { messages: Some(vec![greeting]) })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::<AgentState>::new()
///     .add_node("greet", Greet { name: "Ada".into() })
///     .add_edge(START, "greet")
///     .compile()?;
/// assert_eq!(app.invoke(()).await?.state.messages[0].text(), "hello, Ada, in step 1");
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait StateNode<S: State>: Send + Sync + 'static {
    /// What it takes: the state, what it was sent, or both.
    type Input: FromInput<S> + Send;
    /// What it returns.
    type Output: IntoOutcome<S>;

    /// One step.
    ///
    /// # Errors
    /// Whatever went wrong; it fails the run unless the node has a retry or a handler.
    async fn run(&self, input: Self::Input, cx: Context) -> Result<Self::Output, BoxError>;

    /// What is wrong with how it was made, each with the way out. [`compile`](crate::StateGraph::compile) reports them
    /// as [`BuildError::BadOption`](crate::BuildError::BadOption), with the node's name. A node around another one hands
    /// on what that says.
    fn mistakes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Something that turns a state into the next one; a node of any graph over that state.
///
/// ```
/// use superstep::{Agent, AgentState, EchoAgent, Message};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let state = EchoAgent.run(AgentState { messages: vec![Message::user("hi")] }).await?;
/// assert_eq!(state.messages[1].text(), "hi");
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Agent: Send + Sync + 'static {
    /// What it works on.
    type State: State;

    /// What it is called where it is added to a graph [without a name](crate::StateGraph::add).
    fn name(&self) -> &str {
        let path = std::any::type_name::<Self>().split('<').next().unwrap_or_default();
        path.rsplit("::").next().unwrap_or(path)
    }

    /// One turn.
    ///
    /// # Errors
    /// Whatever went wrong.
    async fn run(&self, state: Self::State) -> Result<Self::State, BoxError>;
}

/// An agent is a node of any graph over its state, which goes on along its edges.
#[async_trait]
impl<A: Agent + ?Sized> Node<A::State> for A {
    fn id(&self) -> &str {
        self.name()
    }

    async fn run(&self, state: A::State) -> Result<(A::State, Next), BoxError> {
        Ok((Agent::run(self, state).await?, Next::Continue))
    }

    fn steers(&self) -> bool {
        false
    }
}

/// An agent that returns only what changes; the caller or the graph merges it: it is a node too.
///
/// ```
/// use async_trait::async_trait;
/// use superstep::{AgentState, AgentStateUpdate, BoxError, Message, PartialAgent};
///
/// struct Polite;
/// #[async_trait]
/// impl PartialAgent for Polite {
///     type State = AgentState;
///     type Update = AgentStateUpdate;
///     async fn run_partial(&self, _: AgentState) -> Result<AgentStateUpdate, BoxError> {
///         Ok(AgentStateUpdate { messages: Some(vec![Message::assistant("you are welcome")]) })
///     }
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let state = AgentState { messages: vec![Message::user("thank you")] };
/// let partial = Polite.run_partial(state.clone()).await?;
/// assert_eq!(state.merge(partial)?.messages.len(), 2);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait PartialAgent: Send + Sync + 'static {
    /// What it works on.
    type State: State;
    /// What it returns.
    type Update: IntoUpdate<Self::State> + Send;

    /// One turn.
    ///
    /// # Errors
    /// Whatever went wrong.
    async fn run_partial(&self, state: Self::State) -> Result<Self::Update, BoxError>;
}

/// Says back what the user said last.
///
/// ```
/// use superstep::{AgentState, EchoAgent, Message, StateGraph, START};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo").compile()?;
/// let out = app.invoke(AgentState { messages: vec![Message::user("hi")] }).await?;
/// assert_eq!(out.state.messages[1].text(), "hi");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct EchoAgent;

impl EchoAgent {
    /// An agent that says back what it hears.
    pub fn new() -> Self {
        Self
    }
}

#[async_trait]
impl Agent for EchoAgent {
    type State = AgentState;

    async fn run(&self, state: AgentState) -> Result<AgentState, BoxError> {
        let said = state.messages.iter().rev().find(|m| m.role() == Some(Role::User));
        let echo = Message::assistant(said.map_or("".into(), Message::text));
        Ok(AgentState { messages: add_messages(state.messages, vec![echo])? })
    }
}

/// A node behind a pointer hands everything on.
macro_rules! forward_node {
    ($([$($generics:tt)*] $pointer:ty),* $(,)?) => {$(
        #[async_trait]
        impl<$($generics)*> Node<S> for $pointer {
            fn id(&self) -> &str {
                (**self).id()
            }

            async fn run(&self, state: S) -> Result<(S, Next), BoxError> {
                (**self).run(state).await
            }

            async fn call(&self, input: NodeInput<S>, cx: Context) -> Result<Outcome<S>, BoxError>
            where
                S: State<Schema = ()>,
            {
                (**self).call(input, cx).await
            }

            fn mistakes(&self) -> Vec<String> {
                (**self).mistakes()
            }

            fn steers(&self) -> bool {
                (**self).steers()
            }
        }
    )*};
}

forward_node!([S: State] Box<dyn Node<S>>, [S: State, N: Node<S> + ?Sized] Arc<N>);

#[async_trait]
impl<S: State> Agent for Box<dyn Agent<State = S>> {
    type State = S;

    fn name(&self) -> &str {
        (**self).name()
    }

    async fn run(&self, state: S) -> Result<S, BoxError> {
        Agent::run(&**self, state).await
    }
}

/// Pointers to partial agents are partial agents, so that they can be chosen at run time.
macro_rules! behind {
    ($($pointer:ident),*) => {$(
        #[async_trait]
        impl<A: PartialAgent + ?Sized> PartialAgent for $pointer<A> {
            type State = A::State;
            type Update = A::Update;

            async fn run_partial(&self, state: A::State) -> Result<A::Update, BoxError> {
                (**self).run_partial(state).await
            }
        }
    )*};
}

behind!(Box, Arc);
