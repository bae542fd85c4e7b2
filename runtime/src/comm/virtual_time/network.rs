//! The cost of a message: the LogGP model, on ranks that share nodes.
//!
//! A sender is busy for `overhead` and may send again `gap` later; a message of `b` bytes arrives
//! `latency + b · per_byte` after it was handed over; taking it costs its receiver `overhead` again
//! [Alexandrov, Ionescu, Schauser, Scheiman 1995]. Ranks on one node have a network of their own.
//!
//! * [Alexandrov et al. 1995] LogGP: incorporating long messages into the LogP model.

use std::time::Duration;

/// One link's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// The time from a message's being handed over to its arrival, if it is short.
    pub latency: Duration,
    /// Processor time to send or to take a message.
    pub overhead: Duration,
    /// Least time from a message's last byte to the next message of its sender.
    pub gap: Duration,
    /// Time in which each byte leaves and arrives after the first, in ns: so long no other message
    /// of the sender can leave.
    pub ns_per_byte: f64,
}

/// A network of ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// The link between ranks of different nodes.
    pub far: Link,
    /// The link between ranks of one node.
    pub near: Link,
    /// Ranks on a node, in the order of their numbers; 1 puts each on a node of its own.
    pub ranks_per_node: u32,
}

impl Link {
    /// A link of these parameters, with a gap equal to the overhead.
    #[must_use]
    pub const fn new(latency: Duration, overhead: Duration, ns_per_byte: f64) -> Self {
        Self {
            latency,
            overhead,
            gap: overhead,
            ns_per_byte,
        }
    }
}

/// Messages through the memory of a node.
const SHARED_MEMORY: Link = Link::new(Duration::from_nanos(300), Duration::from_nanos(100), 0.1);

impl Network {
    /// Every rank on a node of its own, all links alike.
    #[must_use]
    pub const fn uniform(link: Link) -> Self {
        Self {
            far: link,
            near: link,
            ranks_per_node: 1,
        }
    }

    /// Places this many ranks on each node.
    #[must_use]
    pub const fn with_nodes(mut self, ranks_per_node: u32) -> Self {
        self.near = SHARED_MEMORY;
        self.ranks_per_node = ranks_per_node;
        self
    }

    /// The order of magnitude of Myrinet-2000 under MPI: 7 µs, 250 MB/s.
    pub const MYRINET_2000: Self = Self::uniform(Link::new(
        Duration::from_nanos(6000),
        Duration::from_nanos(500),
        4.0,
    ));
    /// The order of magnitude of gigabit Ethernet under TCP: 35 µs, 125 MB/s.
    pub const GIGABIT: Self = Self::uniform(Link::new(
        Duration::from_micros(25),
        Duration::from_micros(5),
        8.0,
    ));
    /// The order of magnitude of HDR InfiniBand: 1 µs, 25 GB/s.
    pub const HDR_INFINIBAND: Self = Self::uniform(Link::new(
        Duration::from_nanos(800),
        Duration::from_nanos(150),
        0.04,
    ));

    pub(super) fn node(&self, rank: u32) -> u32 {
        rank / self.ranks_per_node.max(1)
    }

    pub(super) fn link(&self, from: u32, to: u32) -> &Link {
        if self.node(from) == self.node(to) {
            &self.near
        } else {
            &self.far
        }
    }

    /// No message arrives sooner than this after it was sent.
    pub(super) fn lookahead(&self) -> Duration {
        let least = |link: &Link| link.overhead + link.latency;
        least(&self.far).min(least(&self.near))
    }
}

impl Default for Network {
    /// A network between the presets: 2 µs of latency, 0.5 µs of overhead, 10 GB/s.
    fn default() -> Self {
        Self::uniform(Link::new(
            Duration::from_micros(2),
            Duration::from_nanos(500),
            0.1,
        ))
    }
}
