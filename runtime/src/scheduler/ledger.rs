//! Who has tasks of whom, and until when: termination of rooted groups, after [Dijkstra & Scholten 1980].
//!
//! Tasks of a rooted group that are stolen together are a *lease*: the victim counts it among what is open
//! in its own *account* of the group, the thief opens an account for it. Children and pieces stay in their
//! parent's account. When nothing is open in it any more, the thief says *returned* and closes it. So the
//! accounts form a tree, and when the account at its root has nothing open, no task of the group is left
//! anywhere. Results that went straight home are counted on the way up: home knows how many to expect.
//!
//! Where dead ranks are survived, tasks of every group are leased, and results come back with the lease
//! instead of going home alone. Then a lease to a rank that died has left no trace, and can be run again
//! [van Nieuwpoort et al. 2005]; leases that came from it are void, and so are those made of them.
//!
//! * [Dijkstra & Scholten 1980] Termination detection for diffusing computations, Inf. Proc. Letters 11.
//! * [van Nieuwpoort et al. 2005] Satin: simple and efficient Java-based grid programming, SCPE 6.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::line::{GroupId, Line};
use crate::comm::Rank;

/// A place in the ledger.
pub(super) type AccountId = u32;
/// Tasks that need no account.
pub(super) const NONE: AccountId = AccountId::MAX;

/// Where an account's tasks come from.
#[derive(Clone, Debug)]
enum Origin {
    /// They were forked here.
    Root,
    /// They were stolen.
    Lease { victim: Rank, number: u64 },
}

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct Account<R> {
    line: Arc<Line>,
    origin: Origin,
    /// Tasks here, leases out, and groups that its tasks made and that are not exhausted.
    open: u64,
    /// Results that went straight home.
    sent: u64,
    /// Results that wait to go back with the lease.
    held: Vec<R>,
    revoked: bool,
}

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct Lease {
    account: AccountId,
    thief: Rank,
    /// The thief was told that its group is cancelled.
    told: bool,
}

/// A group whose home this is.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct Root<R> {
    account: AccountId,
    /// The account of the task that made it.
    under: AccountId,
    /// Results that others have sent here, and that have come.
    expected: u64,
    received: u64,
    results: VecDeque<R>,
}

impl<R> Root<R> {
    fn is_complete(&self, accounts: &[Option<Account<R>>]) -> bool {
        let open = accounts[self.account as usize]
            .as_ref()
            .map_or(0, |a| a.open);
        open == 0 && self.expected == self.received
    }
}

/// An account that was closed: its victim must be told.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Closed<R> {
    pub(super) victim: Rank,
    pub(super) lease: u64,
    pub(super) sent: u64,
    pub(super) results: Vec<R>,
}

/// What became of a result.
#[derive(Debug)]
pub(super) enum Kept<R> {
    /// This is its home.
    Home(R),
    /// It waits for its lease, or was dropped with it.
    Away,
}

/// All accounts of a rank.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Ledger<R> {
    accounts: Vec<Option<Account<R>>>,
    free: Vec<AccountId>,
    leases: BTreeMap<u64, Lease>,
    last_lease: u64,
    borrowed: BTreeMap<(Rank, u64), AccountId>,
    roots: BTreeMap<GroupId, Root<R>>,
    closed: Vec<Closed<R>>,
    sweep_at: usize,
    /// Results of groups that nobody will join, thrown away since this was last asked for.
    left_over: usize,
}

/// Groups at home before abandoned ones are looked for.
const FEWEST: usize = 64;

impl<R> Ledger<R> {
    pub(super) fn new() -> Self {
        Self {
            accounts: Vec::new(),
            free: Vec::new(),
            leases: BTreeMap::new(),
            last_lease: 0,
            borrowed: BTreeMap::new(),
            roots: BTreeMap::new(),
            closed: Vec::new(),
            sweep_at: FEWEST,
            left_over: 0,
        }
    }

    /// The account of a group whose home this is; made if there is none, by a task of account `under`.
    pub(super) fn root(&mut self, line: &Arc<Line>, under: AccountId) -> AccountId {
        if let Some(root) = self.roots.get(&line.group()) {
            return root.account;
        }
        if self.roots.len() >= self.sweep_at {
            self.sweep();
            self.sweep_at = (2 * self.roots.len()).max(FEWEST);
        }
        let account = self.open(line, Origin::Root, 0);
        let revoked = self.is_revoked(under);
        if let Some(account) = self.get(account) {
            account.revoked = revoked;
        }
        self.hire(under);
        let root = Root {
            account,
            under,
            expected: 0,
            received: 0,
            results: VecDeque::new(),
        };
        self.roots.insert(line.group(), root);
        account
    }

    /// One more task in an account.
    pub(super) fn hire(&mut self, account: AccountId) {
        if let Some(account) = self.get(account) {
            account.open += 1;
        }
    }

    /// One less.
    pub(super) fn release(&mut self, account: AccountId) {
        if let Some(open) = self.get(account).map(|a| &mut a.open) {
            *open -= 1;
            if *open == 0 {
                self.close(account);
            }
        }
    }

    /// Lends tasks of an account to a thief; returns the lease's number.
    pub(super) fn lend(&mut self, account: AccountId, thief: Rank, tasks: u64) -> u64 {
        let Some(open) = self.get(account).map(|a| &mut a.open) else {
            return 0;
        };
        *open = *open + 1 - tasks;
        self.last_lease += 1;
        let lease = Lease {
            account,
            thief,
            told: false,
        };
        self.leases.insert(self.last_lease, lease);
        self.last_lease
    }

    /// Opens an account for stolen tasks; [`NONE`] if the victim does not wait for them.
    pub(super) fn borrow(
        &mut self,
        line: &Arc<Line>,
        victim: Rank,
        number: u64,
        tasks: u64,
    ) -> Result<AccountId, &'static str> {
        if number == 0 {
            return Ok(NONE);
        }
        if tasks == 0 || self.borrowed.contains_key(&(victim, number)) {
            return Err("a lease without tasks, or given twice");
        }
        let account = self.open(line, Origin::Lease { victim, number }, tasks);
        self.borrowed.insert((victim, number), account);
        Ok(account)
    }

    /// A thief has done with a lease. `None` if the lease is void and what comes of it must be dropped.
    pub(super) fn returned(
        &mut self,
        from: Rank,
        number: u64,
        sent: u64,
    ) -> Result<Option<AccountId>, &'static str> {
        let Some(lease) = self.leases.get(&number) else {
            return Ok(None);
        };
        if lease.thief != from {
            return Err("the return of a lease that another rank has");
        }
        let account = lease.account;
        self.leases.remove(&number);
        let entry = self.get(account);
        let group = entry.map(|a| {
            a.sent += sent;
            a.line.group()
        });
        if let Some(root) = group.and_then(|group| self.roots.get_mut(&group))
            && root.account == account
        {
            root.expected += sent;
        }
        Ok(Some(account))
    }

    /// Ends what [`Ledger::returned`] began, when its results are in their place.
    pub(super) fn settle_return(&mut self, account: AccountId) {
        self.release(account);
    }

    /// A result that goes straight home was produced in this account.
    pub(super) fn sends(&mut self, account: AccountId) {
        if let Some(account) = self.get(account) {
            account.sent += 1;
        }
    }

    /// A result that goes back with its lease.
    pub(super) fn keep(&mut self, account: AccountId, result: R) -> Kept<R> {
        match self.get(account) {
            Some(account) if matches!(account.origin, Origin::Root) => Kept::Home(result),
            Some(account) => {
                if !account.revoked {
                    account.held.push(result);
                }
                Kept::Away
            }
            None => Kept::Away,
        }
    }

    /// A result is home, from here or (`travelled`) from another rank. Gives it back if nobody wants it;
    /// an error if there is no such group.
    pub(super) fn deliver(
        &mut self,
        group: GroupId,
        result: R,
        travelled: bool,
    ) -> Result<Option<R>, &'static str> {
        let root = self.roots.get_mut(&group).ok_or("a result of no group")?;
        root.received += u64::from(travelled);
        let account = self.accounts[root.account as usize].as_ref();
        if account.is_none_or(|a| a.line.is_abandoned()) {
            return Ok(Some(result));
        }
        root.results.push_back(result);
        Ok(None)
    }

    /// The oldest result of a group at home.
    pub(super) fn next_result(&mut self, group: GroupId) -> Option<R> {
        self.roots.get_mut(&group)?.results.pop_front()
    }

    /// Whether nothing of a group at home is left anywhere; it is forgotten then.
    pub(super) fn is_exhausted(&mut self, group: GroupId) -> bool {
        let Some(root) = self.roots.get(&group) else {
            return true;
        };
        let done = root.results.is_empty() && root.is_complete(&self.accounts);
        if done {
            self.forget(group);
        }
        done
    }

    /// The group of an account.
    pub(super) fn line(&self, account: AccountId) -> Option<Arc<Line>> {
        let account = self.accounts.get(account as usize)?.as_ref()?;
        Some(Arc::clone(&account.line))
    }

    /// Whether nothing is open in any account whose tasks the body forked.
    pub(super) fn is_at_rest(&mut self) -> bool {
        self.sweep();
        let mut own = self.roots.values().filter(|root| root.under == NONE);
        own.all(|root| root.is_complete(&self.accounts))
    }

    /// Whether nothing is open in a group at home.
    pub(super) fn is_idle(&self, group: GroupId) -> bool {
        let root = self.roots.get(&group);
        root.is_none_or(|root| root.is_complete(&self.accounts))
    }

    /// The body has ended: it joins no group any more, even if it still holds some.
    pub(super) fn abandon_own(&self) {
        for root in self.roots.values() {
            if let Some(account) = &self.accounts[root.account as usize]
                && account.line.ancestors().count() == 1
            {
                account.line.abandon();
            }
        }
    }

    /// Forgets groups that nobody will join, when nothing of them is left.
    pub(super) fn sweep(&mut self) {
        let mut gone = Vec::new();
        for (&group, root) in &mut self.roots {
            let account = self.accounts[root.account as usize].as_ref();
            if account.is_none_or(|a| a.line.is_abandoned()) {
                self.left_over += root.results.len();
                root.results.clear();
                if root.is_complete(&self.accounts) {
                    gone.push(group);
                }
            }
        }
        gone.into_iter().for_each(|group| self.forget(group));
    }

    /// How many results were thrown away since the last call.
    pub(super) fn left_over(&mut self) -> usize {
        std::mem::take(&mut self.left_over)
    }

    /// Ranks that have tasks of this group from here.
    pub(super) fn thieves(&self, group: GroupId) -> impl Iterator<Item = Rank> {
        self.leases.values().filter_map(move |lease| {
            let account = self.accounts[lease.account as usize].as_ref()?;
            account.line.is_within(group).then_some(lease.thief)
        })
    }

    /// Leases whose groups are cancelled, and of which their thieves were not told yet.
    pub(super) fn newly_cancelled(&mut self) -> Vec<(Rank, u64)> {
        let mut found = Vec::new();
        for (&number, lease) in &mut self.leases {
            let account = self.accounts[lease.account as usize].as_ref();
            if !lease.told && account.is_some_and(|a| a.line.is_cancelled()) {
                lease.told = true;
                found.push((lease.thief, number));
            }
        }
        found
    }

    /// The group of a lease from that rank, if it is still open.
    pub(super) fn borrowed(&self, victim: Rank, number: u64) -> Option<GroupId> {
        let account = *self.borrowed.get(&(victim, number))?;
        Some(self.accounts[account as usize].as_ref()?.line.group())
    }

    /// Makes a lease from that rank void, with the groups that its tasks made; returns the leases that were
    /// made of all that, with their thieves.
    ///
    /// The groups must go too: the scope no longer waits for them, so ranks that have their tasks may leave,
    /// and a task that waits for one would wait for ever.
    pub(super) fn revoke(&mut self, victim: Rank, number: u64) -> Vec<(Rank, u64)> {
        let mut told = Vec::new();
        let mut void = Vec::from_iter(self.borrowed.remove(&(victim, number)));
        while let Some(id) = void.pop() {
            if let Some(account) = self.get(id) {
                account.revoked = true;
                account.held.clear();
            }
            let groups = self.roots.values().filter(|root| root.under == id);
            void.extend(groups.map(|root| root.account));
            let leases = self.leases.iter().filter(|(_, lease)| lease.account == id);
            let leases: Vec<u64> = leases.map(|(&number, _)| number).collect();
            for number in leases {
                if let Some(lease) = self.leases.remove(&number) {
                    told.push((lease.thief, number));
                    self.release(id);
                }
            }
        }
        told
    }

    pub(super) fn is_revoked(&self, account: AccountId) -> bool {
        let account = self.accounts.get(account as usize).and_then(Option::as_ref);
        account.is_some_and(|a| a.revoked)
    }

    /// Leases that a rank has from here.
    pub(super) fn lent_to(&self, thief: Rank) -> Vec<u64> {
        let theirs = self.leases.iter().filter(|(_, l)| l.thief == thief);
        theirs.map(|(&number, _)| number).collect()
    }

    /// Leases that this rank has from another.
    pub(super) fn borrowed_from(&self, victim: Rank) -> Vec<u64> {
        let range = self.borrowed.range((victim, 0)..=(victim, u64::MAX));
        range.map(|(&(_, number), _)| number).collect()
    }

    /// Takes a lease back whose thief died: its tasks are in the account again, `tasks` of them.
    pub(super) fn take_back(&mut self, number: u64, tasks: u64) -> Option<(AccountId, Arc<Line>)> {
        let lease = self.leases.remove(&number)?;
        let account = self.get(lease.account)?;
        account.open = account.open + tasks - 1;
        Some((lease.account, Arc::clone(&account.line)))
    }

    /// Accounts that were closed since the last call.
    pub(super) fn closed(&mut self) -> Vec<Closed<R>> {
        std::mem::take(&mut self.closed)
    }

    pub(super) fn has_closed(&self) -> bool {
        !self.closed.is_empty()
    }

    /// Puts other lines in the place of these.
    #[cfg(test)]
    pub(super) fn relink(&mut self, other: &mut impl FnMut(&mut Arc<Line>)) {
        for account in self.accounts.iter_mut().flatten() {
            other(&mut account.line);
        }
    }

    /// Groups at home and leases, for people.
    pub(super) fn describe(&self) -> Vec<String> {
        let roots = self.roots.iter().map(|(group, root)| {
            let open = self.accounts[root.account as usize]
                .as_ref()
                .map_or(0, |a| a.open);
            format!(
                "{group}: {open} open, {} of {} results here",
                root.received, root.expected
            )
        });
        let lent = self.leases.iter().map(|(number, lease)| {
            let account = self.accounts[lease.account as usize].as_ref();
            let group = account.map_or_else(String::new, |a| a.line.group().to_string());
            format!("lease {number} of {group} is with rank {}", lease.thief.0)
        });
        let borrowed = self.borrowed.iter().map(|((victim, number), account)| {
            let account = self.accounts[*account as usize].as_ref();
            let open = account.map_or(0, |a| a.open);
            format!("{open} open for lease {number} of rank {}", victim.0)
        });
        roots.chain(lent).chain(borrowed).collect()
    }

    fn get(&mut self, account: AccountId) -> Option<&mut Account<R>> {
        self.accounts.get_mut(account as usize)?.as_mut()
    }

    fn open(&mut self, line: &Arc<Line>, origin: Origin, open: u64) -> AccountId {
        let account = Some(Account {
            line: Arc::clone(line),
            origin,
            open,
            sent: 0,
            held: Vec::new(),
            revoked: false,
        });
        match self.free.pop() {
            Some(id) => {
                self.accounts[id as usize] = account;
                id
            }
            None => {
                self.accounts.push(account);
                (self.accounts.len() - 1) as AccountId
            }
        }
    }

    /// Nothing is open in an account any more.
    fn close(&mut self, id: AccountId) {
        let Some(account) = self.get(id) else { return };
        let Origin::Lease { victim, number } = account.origin else {
            return;
        };
        if let Some(account) = self.accounts[id as usize].take() {
            self.free.push(id);
            if !account.revoked {
                self.borrowed.remove(&(victim, number));
                self.closed.push(Closed {
                    victim,
                    lease: number,
                    sent: account.sent,
                    results: account.held,
                });
            }
        }
    }

    fn forget(&mut self, group: GroupId) {
        if let Some(root) = self.roots.remove(&group) {
            self.accounts[root.account as usize] = None;
            self.free.push(root.account);
            self.release(root.under);
        }
    }
}
