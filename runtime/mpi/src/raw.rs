//! MPI calls that keep hold of memory of ours after they return, or that the bindings lack: all
//! `unsafe` code of the workspace but for that of `map.rs`.
//!
//! Two rules make it sound. Memory that an open request reads or writes is reachable through raw
//! pointers only, and is given back to Rust, or freed, after MPI has said that the request is done;
//! what is dropped before that is leaked. And nothing here is `Send`: all calls come from the
//! thread that started MPI ([`Lane`] holds a marker that sees to it).
//!
//! Return codes are not looked at: MPI's error handler, which is left as it is, ends the job.

#![expect(unsafe_code, reason = "the only place that talks to MPI by pointers")]

use std::ffi::{c_int, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop, MaybeUninit};
use std::process;
use std::ptr;
use std::thread;
use std::time::Duration;

use mpi::datatype::Equivalence as _;
use mpi::ffi::{self, MPI_Comm, MPI_Request, MPI_Status};
use mpi::point_to_point::{Message, Status};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{AsRaw as _, AsRawMut as _, Communicator as _, Source as _};

/// Largest message that travels in one piece into a buffer that waits for it, in bytes.
pub(crate) const SHORT: usize = 4000;
/// How many such buffers wait.
const SLOTS: usize = 16;

/// A communicator of our own.
pub(crate) struct Lane {
    comm: SimpleCommunicator,
    /// MPI is called by one thread; on some MPIs a communicator could be sent to another.
    _stays: PhantomData<*const ()>,
}

impl Lane {
    /// Takes over a communicator.
    pub(crate) fn of(comm: SimpleCommunicator) -> Self {
        Self {
            comm,
            _stays: PhantomData,
        }
    }

    /// A copy of a communicator, whose messages nobody else sees. Collective.
    pub(crate) fn copy_of(comm: &SimpleCommunicator) -> Self {
        Self::of(comm.duplicate())
    }

    pub(crate) fn comm(&self) -> &SimpleCommunicator {
        &self.comm
    }

    fn raw(&self) -> MPI_Comm {
        self.comm.as_raw()
    }

    /// The largest tag that MPI takes.
    pub(crate) fn largest_tag(&self) -> c_int {
        let mut value: *mut c_int = ptr::null_mut();
        let mut found: c_int = 0;
        // SAFETY: the attribute is predefined; MPI stores a pointer through the first and a flag
        // through the second pointer, both of which are valid for that.
        unsafe {
            ffi::MPI_Comm_get_attr(
                self.raw(),
                ffi::MPI_TAG_UB as c_int,
                (&raw mut value).cast::<c_void>(),
                &raw mut found,
            )
        };
        if found == 0 || value.is_null() {
            // The value that the standard promises.
            return 32_767;
        }
        // SAFETY: MPI says that this attribute points to an integer, which lives as long as MPI
        // does.
        unsafe { *value }
    }

    /// Whether a message of no bytes has come; takes it.
    pub(crate) fn take_signal(&self, from: c_int, tag: c_int) -> bool {
        let source = self.comm.process_at_rank(from);
        let Some((message, _)) = source.immediate_matched_probe_with_tag(tag) else {
            return false;
        };
        message.matched_receive_into(&mut [0_u8; 0][..]);
        true
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").finish_non_exhaustive()
    }
}

/// Ends the job: every rank is killed and the launcher returns this code. May be called from any
/// thread, so that one which panics can do it while the thread that owns MPI does not answer.
///
/// MPI's own abort is what every launcher understands, but MPICH's has been seen to wait for ever
/// for ranks that compute. A rank that ends without finalising MPI makes most launchers end the job
/// too: the second choice.
#[expect(clippy::disallowed_methods, reason = "a driver sleeps")]
pub(crate) fn end_job(code: c_int) -> ! {
    // Launchers pass on what was said, but some drop it when they end the job.
    thread::sleep(HEARD);
    if mpi::is_initialized() && !mpi::is_finalized() {
        thread::spawn(move || {
            thread::sleep(PATIENCE_WITH_ABORT);
            process::exit(code);
        });
        // SAFETY: no memory is passed. The standard wants the main thread to make this call; ending
        // the job is all that is left to do, and the MPIs known here do it from any thread.
        unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, code) };
    }
    process::exit(code)
}

/// How long a launcher has to pass on the last words.
const HEARD: Duration = Duration::from_millis(100);
/// How long MPI may take to end the job before this rank just ends.
const PATIENCE_WITH_ABORT: Duration = Duration::from_millis(500);

/// A message on its way out, with the bytes that MPI still reads.
pub(crate) struct Sending {
    bytes: ManuallyDrop<Vec<u8>>,
    open: Vec<MPI_Request>,
    _stays: PhantomData<*const ()>,
}

impl Sending {
    /// Starts to send bytes in one piece; `None` if they have gone already, as short ones mostly
    /// do.
    pub(crate) fn start(lane: &Lane, to: c_int, tag: c_int, bytes: Vec<u8>) -> Option<Self> {
        let mut request = isend(lane, to, tag, &bytes);
        if is_done(&mut request) {
            return None;
        }
        Some(Self {
            bytes: ManuallyDrop::new(bytes),
            open: vec![request],
            _stays: PhantomData,
        })
    }

    /// Starts to send bytes in pieces.
    pub(crate) fn start_pieces(
        lane: &Lane,
        to: c_int,
        tag: c_int,
        bytes: Vec<u8>,
        piece: usize,
    ) -> Self {
        let open = bytes.chunks(piece).map(|p| isend(lane, to, tag, p));
        Self {
            open: open.collect(),
            bytes: ManuallyDrop::new(bytes),
            _stays: PhantomData,
        }
    }

    /// How many bytes it is.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether MPI has read all bytes.
    fn is_done(&mut self) -> bool {
        self.open.retain_mut(|request| !is_done(request));
        self.open.is_empty()
    }

    /// The bytes, if MPI has read all of them; else itself.
    pub(crate) fn into_bytes(mut self) -> Result<Vec<u8>, Self> {
        if self.is_done() {
            Ok(mem::take(&mut *self.bytes))
        } else {
            Err(self)
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if self.open.is_empty() {
            // SAFETY: it is dropped once, here, and no request is open that reads it.
            unsafe { ManuallyDrop::drop(&mut self.bytes) };
        }
    }
}

impl fmt::Debug for Sending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sending({} bytes)", self.bytes.len())
    }
}

/// Buffers that wait for short messages from anyone, in the order in which MPI fills them.
///
/// MPI matches messages with receives in the order in which these were started, which is round the
/// ring: looking at the oldest alone gives the messages of each sender in order.
pub(crate) struct Inbox {
    /// `SLOTS` buffers of `SHORT` bytes, made by `Box::into_raw`.
    buffers: *mut [u8],
    requests: Vec<MPI_Request>,
    oldest: usize,
}

impl Inbox {
    /// Starts to receive on a lane, which must live at least as long as what is returned is used.
    pub(crate) fn open(lane: &Lane) -> Self {
        let buffers = Box::into_raw(vec![0_u8; SLOTS * SHORT].into_boxed_slice());
        let requests = (0..SLOTS).map(|slot| {
            let mut request = MaybeUninit::uninit();
            // SAFETY: the buffer is allocated until `drop`, which ends the request first, and
            // nothing but MPI touches it while the request is active. `request` is written by the
            // call.
            unsafe {
                ffi::MPI_Recv_init(
                    buffer(buffers, slot).cast(),
                    count(SHORT),
                    byte_type(),
                    ffi::RSMPI_ANY_SOURCE,
                    ffi::RSMPI_ANY_TAG,
                    lane.raw(),
                    request.as_mut_ptr(),
                )
            };
            // SAFETY: the call above has written it.
            let mut request = unsafe { request.assume_init() };
            start(&mut request);
            request
        });
        Self {
            requests: requests.collect(),
            buffers,
            oldest: 0,
        }
    }

    /// The next message, if one has come: `read` gets its sender, tag and bytes.
    pub(crate) fn take<R>(&mut self, read: impl FnOnce(c_int, c_int, &[u8]) -> R) -> Option<R> {
        let slot = self.oldest;
        let status = test(&mut self.requests[slot])?;
        let length = usize::try_from(status.count(u8::equivalent_datatype())).unwrap_or(0);
        // SAFETY: the request is done, so MPI leaves the buffer alone until it is started again
        // below; MPI has written `length` bytes of it, and the rest were zeros from the start or
        // older bytes.
        let bytes =
            unsafe { std::slice::from_raw_parts(buffer(self.buffers, slot), length.min(SHORT)) };
        let result = read(status.source_rank(), status.tag(), bytes);
        start(&mut self.requests[slot]);
        self.oldest = (slot + 1) % SLOTS;
        Some(result)
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        if mpi::is_finalized() {
            return;
        }
        for request in &mut self.requests {
            // SAFETY: the request is active; MPI marks it for cancellation.
            unsafe { ffi::MPI_Cancel(&raw mut *request) };
        }
        for request in &mut self.requests {
            // SAFETY: a cancelled receive ends at once, or with a message that is then lost, as it
            // would be without us. After this the buffer is no longer written.
            unsafe { ffi::MPI_Wait(&raw mut *request, ffi::RSMPI_STATUS_IGNORE) };
            // SAFETY: the request is persistent and inactive.
            unsafe { ffi::MPI_Request_free(&raw mut *request) };
        }
        // SAFETY: made by `Box::into_raw`, freed once, and no request is left that writes to it.
        drop(unsafe { Box::from_raw(self.buffers) });
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}

/// A long message on its way in, of which sender, tag and length are known.
pub(crate) struct Incoming {
    /// Empty, with room for the whole message.
    bytes: ManuallyDrop<Vec<u8>>,
    total: usize,
    /// Bytes whose pieces have been matched.
    matched: usize,
    open: Vec<MPI_Request>,
    _stays: PhantomData<*const ()>,
}

impl Incoming {
    /// Makes room for a message, in `bytes`, which is empty and may have room already.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn of(total: u64, mut bytes: Vec<u8>) -> Result<Self, String> {
        bytes.clear();
        let total = usize::try_from(total)
            .ok()
            .filter(|&total| bytes.try_reserve_exact(total).is_ok())
            .ok_or_else(|| {
                format!("it announced {total} bytes, which is more than memory holds")
            })?;
        Ok(Self {
            bytes: ManuallyDrop::new(bytes),
            total,
            matched: 0,
            open: Vec::new(),
            _stays: PhantomData,
        })
    }

    /// How many bytes were announced.
    pub(crate) fn len(&self) -> usize {
        self.total
    }

    /// Whether all pieces have been matched with room for them.
    pub(crate) fn is_matched(&self) -> bool {
        self.matched == self.total
    }

    /// Takes pieces that have come from that sender with that tag; true if there were any.
    ///
    /// # Errors
    /// More came than was announced.
    pub(crate) fn take_pieces(
        &mut self,
        lane: &Lane,
        from: c_int,
        tag: c_int,
    ) -> Result<bool, String> {
        let source = lane.comm().process_at_rank(from);
        let mut any = false;
        while !self.is_matched() {
            let Some((message, status)) = source.immediate_matched_probe_with_tag(tag) else {
                break;
            };
            any = true;
            self.receive(message, &status)?;
        }
        Ok(any)
    }

    fn receive(&mut self, mut message: Message, status: &Status) -> Result<(), String> {
        let length = usize::try_from(status.count(u8::equivalent_datatype())).unwrap_or(0);
        if length == 0 || length > self.total - self.matched {
            // It must be received by somebody.
            let mut rest = vec![0_u8; length];
            message.matched_receive_into(&mut rest[..]);
            return Err(format!(
                "a piece of {length} bytes came where {} were left of the {} announced",
                self.total - self.matched,
                self.total
            ));
        }
        // SAFETY: `matched` bytes are within the room that was reserved.
        let at = unsafe { self.bytes.as_mut_ptr().add(self.matched) };
        let mut request = MaybeUninit::uninit();
        // SAFETY: `length` bytes from `at` are within the room that was reserved, and no other
        // request writes there. The room is not freed or moved before the request is done. The
        // message is matched and not received yet; MPI sets its handle to null. `request` is
        // written by the call.
        unsafe {
            ffi::MPI_Imrecv(
                at.cast(),
                count(length),
                byte_type(),
                message.as_raw_mut(),
                request.as_mut_ptr(),
            )
        };
        // SAFETY: the call above has written it.
        self.open.push(unsafe { request.assume_init() });
        self.matched += length;
        Ok(())
    }

    /// Whether all bytes are here.
    pub(crate) fn is_done(&mut self) -> bool {
        self.open.retain_mut(|request| !is_done(request));
        self.open.is_empty() && self.is_matched()
    }

    /// The message, if all of it is here.
    pub(crate) fn into_bytes(mut self) -> Option<Vec<u8>> {
        if !self.is_done() {
            return None;
        }
        // SAFETY: `self` is dropped right after, and its drop leaves the bytes alone from here on,
        // for `total` is set to what it never is otherwise.
        let mut bytes = unsafe { ManuallyDrop::take(&mut self.bytes) };
        let length = mem::replace(&mut self.total, TAKEN);
        // SAFETY: room for `length` bytes was reserved, pieces that add up to it were received one
        // behind the other, and all their requests are done.
        unsafe { bytes.set_len(length) };
        Some(bytes)
    }
}

/// Stands for the length of a message whose bytes were taken.
const TAKEN: usize = usize::MAX;

impl Drop for Incoming {
    fn drop(&mut self) {
        if self.open.is_empty() && self.total != TAKEN {
            // SAFETY: it is dropped once, here, and no request is open that writes to it.
            unsafe { ManuallyDrop::drop(&mut self.bytes) };
        }
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Incoming({} of {} bytes)", self.matched, self.total)
    }
}

/// Starts to send. The bytes must stay where they are until the request is done.
fn isend(lane: &Lane, to: c_int, tag: c_int, bytes: &[u8]) -> MPI_Request {
    let mut request = MaybeUninit::uninit();
    // SAFETY: callers keep the bytes, which are on the heap, until the request is done, and leak
    // them if it never is. `request` is written by the call.
    unsafe {
        ffi::MPI_Isend(
            bytes.as_ptr().cast(),
            count(bytes.len()),
            byte_type(),
            to,
            tag,
            lane.raw(),
            request.as_mut_ptr(),
        )
    };
    // SAFETY: the call above has written it.
    unsafe { request.assume_init() }
}

/// Activates a persistent request.
fn start(request: &mut MPI_Request) {
    // SAFETY: callers pass a persistent request that is not active.
    unsafe { ffi::MPI_Start(request) };
}

fn test(request: &mut MPI_Request) -> Option<Status> {
    let mut done: c_int = 0;
    let mut status = MaybeUninit::<MPI_Status>::uninit();
    // SAFETY: the request is open, or null, which counts as done; MPI writes the flag, and the
    // status if it is set.
    unsafe { ffi::MPI_Test(request, &raw mut done, status.as_mut_ptr()) };
    if done == 0 {
        return None;
    }
    // SAFETY: the flag is set, so MPI has written it.
    Some(Status::from_raw(unsafe { status.assume_init() }))
}

fn is_done(request: &mut MPI_Request) -> bool {
    let mut done: c_int = 0;
    // SAFETY: as in `test`; MPI writes no status, as asked.
    unsafe { ffi::MPI_Test(request, &raw mut done, ffi::RSMPI_STATUS_IGNORE) };
    done != 0
}

/// The beginning of the buffer of a slot.
fn buffer(buffers: *mut [u8], slot: usize) -> *mut u8 {
    debug_assert!(slot < SLOTS);
    buffers.cast::<u8>().wrapping_add(slot * SHORT)
}

fn byte_type() -> ffi::MPI_Datatype {
    u8::equivalent_datatype().as_raw()
}

/// A length as MPI wants it; pieces are cut so that it fits.
fn count(length: usize) -> c_int {
    c_int::try_from(length).expect("no piece is longer than the options allow")
}
