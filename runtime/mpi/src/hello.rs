//! The first messages of ranks: which program they run, or that they cannot take part.
//!
//! Ranks of other builds may not understand each other's messages. So what is said here does not
//! change from build to build: 256 bytes of each rank, in one gather to all that is MPI's own,
//! before anything else.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `weft-mpi` |
//! | 1 | 0, or the exit code of a rank that cannot take part |
//! | 247 | text in UTF-8, then zeros: the program, or why it cannot |

use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, CommunicatorCollectives as _};
use weft_runtime::comm::{Rank, name_ranks};

use crate::end::Failure;

const LENGTH: usize = 256;
const MAGIC: [u8; 8] = *b"weft-mpi";
/// Exit code where ranks run other programs.
const OTHER_PROGRAM: u8 = 3;
/// The most other programs that are named.
const MOST_NAMED: usize = 3;

/// The first message of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hello {
    /// The exit code, 0 if it takes part.
    code: u8,
    text: String,
}

/// No rank goes on, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: u8,
    /// The message about it, for the rank that speaks.
    pub(crate) message: String,
    /// The rank that speaks.
    pub(crate) speaker: Rank,
}

/// Says which program this rank runs, or why it cannot take part, and hears the others. Collective,
/// on every rank before anything else.
pub(crate) fn greet(
    world: &SimpleCommunicator,
    host: &str,
    own: Result<&str, &Failure>,
) -> Result<(), Refusal> {
    let hello = match own {
        Ok(program) => Hello {
            code: 0,
            text: program.to_owned(),
        },
        // A rank that cannot take part has no success to report.
        Err(failure) => Hello {
            code: failure.code.max(1),
            text: failure.message.clone(),
        },
    };
    let sent = write(&hello);
    let mut all = vec![0_u8; LENGTH * world.size() as usize];
    world.all_gather_into(&sent[..], &mut all[..]);
    let (said, _) = all.as_chunks::<LENGTH>();
    let said: Vec<Option<Hello>> = said.iter().map(read).collect();
    let me = Rank(world.rank() as u32);
    judge(&said).map_or(Ok(()), |mut refusal| {
        if let Err(failure) = own
            && refusal.speaker == me
        {
            // Not all of it may have travelled.
            refusal.message = format!("rank {} on {host}: {}", me.0, failure.message);
        }
        Err(refusal)
    })
}

fn write(hello: &Hello) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    let (magic, rest) = bytes.split_at_mut(MAGIC.len());
    magic.copy_from_slice(&MAGIC);
    rest[0] = hello.code;
    let room = &mut rest[1..];
    let mut end = hello.text.len().min(room.len());
    while !hello.text.is_char_boundary(end) {
        end -= 1;
    }
    room[..end].copy_from_slice(&hello.text.as_bytes()[..end]);
    bytes
}

fn read(bytes: &[u8; LENGTH]) -> Option<Hello> {
    let (&code, text) = bytes.strip_prefix(&MAGIC)?.split_first()?;
    let end = text.iter().rposition(|&byte| byte != 0);
    let text = &text[..end.map_or(0, |end| end + 1)];
    Some(Hello {
        code,
        text: String::from_utf8_lossy(text).into_owned(),
    })
}

/// The decision on the first messages of all ranks; the same on all ranks.
fn judge(said: &[Option<Hello>]) -> Option<Refusal> {
    let ranks = || (0..).map(Rank).zip(said);
    let fails = |hello: &Option<Hello>| hello.as_ref().is_some_and(|hello| hello.code != 0);
    if let Some((speaker, Some(hello))) = ranks().find(|(_, hello)| fails(hello)) {
        return Some(Refusal {
            code: hello.code,
            message: format!("rank {}: {}", speaker.0, hello.text),
            speaker,
        });
    }
    let mut programs: Vec<(String, Vec<Rank>)> = Vec::new();
    for (rank, hello) in ranks() {
        let program = match hello {
            Some(hello) if !hello.text.is_empty() => hello.text.clone(),
            Some(_) => "a program without a name".to_owned(),
            None => "a program that is none of these".to_owned(),
        };
        match programs.iter_mut().find(|(other, _)| *other == program) {
            Some((_, ranks)) => ranks.push(rank),
            None => programs.push((program, vec![rank])),
        }
    }
    let [usual, others @ ..] = &programs[..] else {
        return None;
    };
    if others.is_empty() {
        return None;
    }
    let runs = |(program, ranks): &(String, Vec<Rank>)| {
        let run = if ranks.len() == 1 { "runs" } else { "run" };
        format!("{} {run} {program}", name_ranks(ranks))
    };
    let mut named: Vec<String> = others.iter().take(MOST_NAMED).map(runs).collect();
    if others.len() > MOST_NAMED {
        named.push(format!("there are {} more", others.len() - MOST_NAMED));
    }
    Some(Refusal {
        code: OTHER_PROGRAM,
        message: format!(
            "ranks do not run the same build: {} where {}; start the same file on every host",
            named.join(" and "),
            runs(usual)
        ),
        speaker: Rank(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(text: &str) -> Option<Hello> {
        let text = text.to_owned();
        Some(Hello { code: 0, text })
    }

    /// These bytes never change: ranks of all builds must be able to read them.
    #[test]
    fn a_greeting_is_the_same_bytes_in_every_build() {
        let hello = Hello {
            code: 2,
            text: "nö".to_owned(),
        };
        let bytes = write(&hello);
        assert_eq!(&bytes[..13], b"weft-mpi\x02n\xc3\xb6\0");
        assert!(bytes[12..].iter().all(|&byte| byte == 0));
        assert_eq!(read(&bytes), Some(hello));
        assert_eq!(read(&[7; LENGTH]), None);
    }

    #[test]
    fn a_long_text_is_cut_between_letters() {
        let text = "ä".repeat(LENGTH);
        let read = read(&write(&Hello { code: 0, text })).unwrap();
        assert_eq!(read.text, "ä".repeat((LENGTH - 9) / 2));
    }

    #[test]
    fn ranks_of_other_builds_are_named() {
        let [a, b] = ["weft 1, binary aa", "weft 1, binary bb"].map(program);
        assert_eq!(judge(&[a.clone(), a.clone()]), None);
        assert_eq!(judge(&[program("")]), None);
        let refusal = judge(&[a.clone(), b.clone(), b.clone(), a.clone(), b]).unwrap();
        assert_eq!((refusal.code, refusal.speaker), (3, Rank(0)));
        assert_eq!(
            refusal.message,
            "ranks do not run the same build: ranks 1, 2 and 4 run weft 1, binary bb where ranks 0 and 3 run weft 1, binary aa; \
             start the same file on every host"
        );
        let refusal = judge(&[a.clone(), None, program("")]).unwrap();
        assert!(
            refusal.message.contains(
                "rank 1 runs a program that is none of these and rank 2 runs a program without"
            ),
            "{}",
            refusal.message
        );
        let many: Vec<_> = (0..9)
            .map(|rank| program(&format!("build {rank}")))
            .collect();
        let message = judge(&many).unwrap().message;
        assert!(
            message.contains("rank 3 runs build 3 and there are 5 more where"),
            "{message}"
        );
    }

    #[test]
    fn the_first_that_cannot_take_part_speaks_whatever_the_builds() {
        let fails = |code, text: &str| {
            let text = text.to_owned();
            Some(Hello { code, text })
        };
        let said = [
            program("a"),
            program("b"),
            fails(5, "no disk"),
            fails(2, "no such option"),
        ];
        let refusal = Refusal {
            code: 5,
            message: "rank 2: no disk".to_owned(),
            speaker: Rank(2),
        };
        assert_eq!(judge(&said), Some(refusal));
    }
}
