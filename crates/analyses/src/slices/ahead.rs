//! Follows a run on one thread while another thread processes its stretches.

use std::error::Error;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use afterimage_ids::{EntityRef, FuncId, NodeId};
use afterimage_machine::NodeCode;
use afterimage_slice::{Forward, Stretch};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;

use afterimage_replay::steps::{Follower, Run, StepsError};

/// A stretch of the run with all the data needed to process it.
#[derive(Default)]
pub(super) struct Followed {
    pub stretch: Stretch,
    /// The nodes that occur in no earlier stretch, with their code.
    pub codes: Vec<(NodeId, NodeCode)>,
    /// The number of blocks executed before the stretch.
    pub before: u64,
    /// The activations that are open before the stretch, outermost first. Each comes with the node
    /// that it executed last.
    pub open: Vec<(FuncId, NodeId)>,
}

impl Followed {
    /// Passes the stretch to a forward slicer. If `begun` is false, this is the slicer's first
    /// stretch.
    pub fn go_over(&self, slicer: &mut Forward<'_>, begun: &mut bool) {
        for (node, code) in &self.codes {
            slicer.prepare(*node, code);
        }
        if !std::mem::replace(begun, true) {
            for &(function, node) in &self.open {
                slicer.open(function, node);
            }
        }
        slicer.pass(&self.stretch);
    }
}

/// Follows the run, fills stretches and sends them.
pub(super) struct Stretches<'a, S: Segments> {
    pub follower: Follower<'a, S>,
    given: SyncSender<Followed>,
    /// Receives processed stretches for reuse.
    back: Receiver<Followed>,
    /// For each node, whether its code was sent.
    known: Vec<bool>,
}

/// Whether more stretches are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    More,
    Enough,
}

/// The number of stretches that exist at once. One is processed while the other is filled. They
/// take most of a slice's memory.
const AT_ONCE: usize = 2;

impl<S: Segments> Stretches<'_, S>
where
    S::Error: Error + 'static,
{
    /// Fills a stretch and sends it. Executes nodes while `goes_on` returns true. The arguments of
    /// `goes_on` are the number of nodes in the stretch and the number of blocks executed.
    pub fn give(
        &mut self,
        goes_on: impl Fn(usize, u64) -> bool,
    ) -> Result<Wanted, StepsError<S::Error>> {
        let Ok(mut followed) = self.back.recv() else {
            return Ok(Wanted::Enough);
        };
        followed.stretch.clear();
        followed.codes.clear();
        followed.before = self.follower.machine.time();
        followed.open = self.follower.machine.activations().collect();
        for &(_, node) in &followed.open {
            self.follower.compile(node)?;
            self.tell(node, &mut followed.codes);
        }
        while goes_on(followed.stretch.len(), self.follower.machine.time())
            && let Some(visit) = self.follower.advance()?
        {
            self.tell(visit.node, &mut followed.codes);
            followed.stretch.at(visit.start);
            self.follower.execute(visit, &mut followed.stretch)?;
        }
        Ok(match self.given.send(followed) {
            Ok(()) => Wanted::More,
            Err(_) => Wanted::Enough,
        })
    }

    #[inline]
    fn tell(&mut self, node: NodeId, codes: &mut Vec<(NodeId, NodeCode)>) {
        if let Some(known) = self.known.get_mut(node.index())
            && !*known
            && let Some(code) = self.follower.machine.codes().get(node)
        {
            *known = true;
            codes.push((node, code.clone()));
        }
    }
}

/// The receiving end, on the other thread.
pub(super) struct Coming {
    stretches: Receiver<Followed>,
    gone_over: Sender<Followed>,
}

impl Coming {
    /// Passes each stretch to `pass`, in order, until there are no more stretches or `pass` wants
    /// no more.
    pub fn each(self, mut pass: impl FnMut(&Followed) -> Wanted) {
        while let Ok(followed) = self.stretches.recv() {
            if pass(&followed) == Wanted::Enough {
                break;
            }
            // If sending fails, the thread that follows the run has ended.
            let _ = self.gone_over.send(followed);
        }
    }
}

/// Follows a run on this thread, using `follow`, while another thread processes the stretches.
/// Returns the result of `over` if the run could be followed as far as necessary.
pub(super) fn ahead<'a, S: Segments, T: Send>(
    run: Run<'a, S>,
    log: LogReader,
    follow: impl FnOnce(&mut Stretches<'a, S>) -> Result<(), StepsError<S::Error>>,
    over: impl FnOnce(Coming) -> T + Send,
) -> Result<T, StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let run = Run {
        progress: &|_| {},
        ..run
    };
    let follower = Follower::new(run, log)?;
    let (given, stretches) = sync_channel(AT_ONCE);
    let (gone_over, back) = channel();
    for _ in 0..AT_ONCE {
        // The receiver is alive, because this function holds it.
        let _ = gone_over.send(Followed::default());
    }
    std::thread::scope(|scope| {
        let coming = Coming {
            stretches,
            gone_over,
        };
        let going_over = scope.spawn(move || over(coming));
        let mut stretches = Stretches {
            follower,
            given,
            back,
            known: vec![false; run.path.nodes().len()],
        };
        let followed = follow(&mut stretches);
        drop(stretches);
        let found = going_over.join();
        followed?;
        found.map_err(|panic| std::panic::resume_unwind(panic))
    })
}
