//! The lease table: which rank has tasks of which other, and until when.
//!
//! It detects the termination of rooted groups, after [Dijkstra & Scholten 1980]. Tasks of a rooted
//! group that are stolen together are a *lease*. The victim counts a lease as one open thing in its
//! own *account* of the group; the thief opens an account for it, in which children and pieces of
//! its tasks stay. When nothing is open in that account any more, the thief sends *returned* and
//! closes it. So the accounts form a tree, and when nothing is open in the account at its root, no
//! task of the group is left anywhere. Results that went home are counted on the way up, so that
//! home knows how many to expect.
//!
//! * [Dijkstra & Scholten 1980] Termination detection for diffusing computations, Inf. Proc.
//!   Letters 11.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::ancestry::{Ancestry, GroupId};
use crate::comm::Rank;

/// The number of an account in the lease table.
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

#[derive(Clone, Debug)]
struct Account {
    ancestry: Arc<Ancestry>,
    origin: Origin,
    /// Tasks here, leases out, and groups that its tasks made and that are not exhausted.
    open: u64,
    /// Results that went home.
    sent: u64,
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
    fn is_complete(&self, accounts: &[Option<Account>]) -> bool {
        let open = accounts[self.account as usize]
            .as_ref()
            .map_or(0, |a| a.open);
        open == 0 && self.expected == self.received
    }
}

/// An account that was closed: its victim must be told.
#[derive(Clone, Debug)]
pub(super) struct Closed {
    pub(super) victim: Rank,
    pub(super) lease: u64,
    pub(super) sent: u64,
}

/// All accounts of a rank.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct LeaseTable<R> {
    accounts: Vec<Option<Account>>,
    free: Vec<AccountId>,
    leases: BTreeMap<u64, Lease>,
    last_lease: u64,
    borrowed: BTreeMap<(Rank, u64), AccountId>,
    roots: BTreeMap<GroupId, Root<R>>,
    closed: Vec<Closed>,
    sweep_at: usize,
    /// Results of groups that nobody will join, thrown away since this was last asked for.
    left_over: usize,
}

/// Groups at home before abandoned ones are looked for.
const FEWEST: usize = 64;

impl<R> LeaseTable<R> {
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

    /// The account of a group whose home this is; made if there is none, by a task of account
    /// `under`.
    pub(super) fn root(&mut self, ancestry: &Arc<Ancestry>, under: AccountId) -> AccountId {
        if let Some(root) = self.roots.get(&ancestry.group()) {
            return root.account;
        }
        if self.roots.len() >= self.sweep_at {
            self.sweep();
            self.sweep_at = (2 * self.roots.len()).max(FEWEST);
        }
        let account = self.open(ancestry, Origin::Root, 0);
        self.hire(under);
        let root = Root {
            account,
            under,
            expected: 0,
            received: 0,
            results: VecDeque::new(),
        };
        self.roots.insert(ancestry.group(), root);
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
        ancestry: &Arc<Ancestry>,
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
        let account = self.open(ancestry, Origin::Lease { victim, number }, tasks);
        self.borrowed.insert((victim, number), account);
        Ok(account)
    }

    /// A thief has done with a lease.
    pub(super) fn returned(
        &mut self,
        from: Rank,
        number: u64,
        sent: u64,
    ) -> Result<(), &'static str> {
        let Some(lease) = self.leases.get(&number) else {
            return Err("the return of nothing that was lent");
        };
        if lease.thief != from {
            return Err("the return of a lease that another rank has");
        }
        let account = lease.account;
        self.leases.remove(&number);
        let entry = self.get(account);
        let group = entry.map(|a| {
            a.sent += sent;
            a.ancestry.group()
        });
        if let Some(root) = group.and_then(|group| self.roots.get_mut(&group))
            && root.account == account
        {
            root.expected += sent;
        }
        self.release(account);
        Ok(())
    }

    /// A result that goes to another rank was produced in this account.
    pub(super) fn sends(&mut self, account: AccountId) {
        if let Some(account) = self.get(account) {
            account.sent += 1;
        }
    }

    /// A result is home, from here or (`travelled`) from another rank. Gives it back if nobody
    /// wants it; an error if there is no such group.
    pub(super) fn deliver(
        &mut self,
        group: GroupId,
        result: R,
        travelled: bool,
    ) -> Result<Option<R>, &'static str> {
        let root = self.roots.get_mut(&group).ok_or("a result of no group")?;
        root.received += u64::from(travelled);
        let account = self.accounts[root.account as usize].as_ref();
        if account.is_none_or(|a| a.ancestry.is_abandoned()) {
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

    /// The body has ended: it joins no group any more, even if it still holds some.
    pub(super) fn abandon_own(&self) {
        for root in self.roots.values() {
            if let Some(account) = &self.accounts[root.account as usize]
                && account.ancestry.ancestors().count() == 1
            {
                account.ancestry.abandon();
            }
        }
    }

    /// Forgets groups that nobody will join, when nothing of them is left.
    pub(super) fn sweep(&mut self) {
        let mut gone = Vec::new();
        for (&group, root) in &mut self.roots {
            let account = self.accounts[root.account as usize].as_ref();
            if account.is_none_or(|a| a.ancestry.is_abandoned()) {
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
            account.ancestry.is_within(group).then_some(lease.thief)
        })
    }

    /// Leases whose groups are cancelled, and of which their thieves were not told yet.
    pub(super) fn newly_cancelled(&mut self) -> Vec<(Rank, u64)> {
        let mut found = Vec::new();
        for (&number, lease) in &mut self.leases {
            let account = self.accounts[lease.account as usize].as_ref();
            if !lease.told && account.is_some_and(|a| a.ancestry.is_cancelled()) {
                lease.told = true;
                found.push((lease.thief, number));
            }
        }
        found
    }

    /// The group of a lease from that rank, if it is still open.
    pub(super) fn borrowed(&self, victim: Rank, number: u64) -> Option<GroupId> {
        let account = *self.borrowed.get(&(victim, number))?;
        Some(self.accounts[account as usize].as_ref()?.ancestry.group())
    }

    /// Accounts that were closed since the last call.
    pub(super) fn closed(&mut self) -> Vec<Closed> {
        std::mem::take(&mut self.closed)
    }

    pub(super) fn has_closed(&self) -> bool {
        !self.closed.is_empty()
    }

    /// Puts other groups in the place of these.
    #[cfg(test)]
    pub(super) fn relink(&mut self, other: &mut impl FnMut(&mut Arc<Ancestry>)) {
        for account in self.accounts.iter_mut().flatten() {
            other(&mut account.ancestry);
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
            let group = account.map_or_else(String::new, |a| a.ancestry.group().to_string());
            format!("lease {number} of {group} is with rank {}", lease.thief.0)
        });
        let borrowed = self.borrowed.iter().map(|((victim, number), account)| {
            let account = self.accounts[*account as usize].as_ref();
            let open = account.map_or(0, |a| a.open);
            format!("{open} open for lease {number} of rank {}", victim.0)
        });
        roots.chain(lent).chain(borrowed).collect()
    }

    fn get(&mut self, account: AccountId) -> Option<&mut Account> {
        self.accounts.get_mut(account as usize)?.as_mut()
    }

    fn open(&mut self, ancestry: &Arc<Ancestry>, origin: Origin, open: u64) -> AccountId {
        let account = Some(Account {
            ancestry: Arc::clone(ancestry),
            origin,
            open,
            sent: 0,
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
            self.borrowed.remove(&(victim, number));
            self.closed.push(Closed {
                victim,
                lease: number,
                sent: account.sent,
            });
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
