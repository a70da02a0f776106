package etcd

// Warning names a defect of an etcd version that matters to writ.
type Warning struct {
	// Name identifies the defect in logs.
	Name string
	// Text says what goes wrong.
	Text string
	// Issues names the reports at etcd-io/etcd; empty where there is none.
	Issues string
	// FixedIn lists the first good version of each line; empty while Open.
	FixedIn string
	// Open marks a defect that no version is known to have fixed. It is worth
	// knowing, but no upgrade removes it.
	Open bool
}

// defect is one row of the table: a warning, the version that brought it (zero:
// older than all that count), and the versions that fixed it (none: open).
type defect struct {
	name, text, issues string
	since              Version
	fixed              releases
}

// Warnings returns the defects of a version, in the order of the table; the
// newest supported releases have only open ones. It is pure.
func Warnings(v Version) []Warning {
	var warnings []Warning
	for _, d := range defects() {
		if v.Compare(d.since) < 0 || d.fixed.reached(v) {
			continue
		}
		warnings = append(warnings, Warning{
			Name: d.name, Text: d.text, Issues: d.issues,
			FixedIn: d.fixed.String(), Open: len(d.fixed) == 0,
		})
	}
	return warnings
}

// defects is the table, most dangerous first.
func defects() []defect { return append(readsAndWatches(), writesAndMembers()...) }

// readsAndWatches are the defects by which a client sees what is not so.
func readsAndWatches() []defect {
	return []defect{
		{
			name: "stale-reads-after-pause", issues: "#20418",
			text:  "a linearizable read may be stale after the process was paused",
			fixed: releases{{3, 5, 28, ""}, {3, 6, 9, ""}, {3, 7, 0, ""}},
		}, {
			name: "stale-reads-on-leader-change", issues: "#21375",
			text:  "a linearizable read may be stale around a leader change",
			fixed: releases{{3, 5, 28, ""}, {3, 6, 9, ""}, {3, 7, 0, ""}},
		}, {
			name: "renewal-of-revoked-lease", issues: "#20590",
			text:  "renewing a revoked lease may be answered with success",
			fixed: releases{{3, 5, 23, ""}, {3, 6, 5, ""}},
		}, {
			name: "corruption-by-snapshot-and-defrag", issues: "#20650",
			text:  "a snapshot applied during a defragmentation may corrupt the database",
			fixed: releases{{3, 5, 23, ""}, {3, 6, 5, ""}},
		}, {
			name: "old-events-on-future-watch", issues: "#20221",
			text:  "a watch from a future revision may deliver older events",
			fixed: releases{{3, 5, 22, ""}, {3, 6, 2, ""}},
		}, {
			name: "missing-delete-event", issues: "#19179",
			text:  "a watch may miss the deletion at the compacted revision",
			fixed: releases{{3, 5, 18, ""}},
		}, {
			name: "missing-event-after-compaction", issues: "#18089",
			text:  "a watch that starts at the compacted revision may miss an event",
			fixed: releases{{3, 5, 16, ""}},
		}, {
			name: "lost-watch-events", issues: "#17529",
			text:  "a slow watch may lose events",
			fixed: releases{{3, 5, 13, ""}},
		}, {
			name: "revision-goes-back", issues: "#17780",
			text:  "revisions may decrease after a crash during a compaction",
			fixed: releases{{3, 5, 14, ""}},
		},
	}
}

// writesAndMembers are the defects of what is stored and of who stores it.
func writesAndMembers() []defect {
	return []defect{
		{
			name: "old-leader-revokes-leases", issues: "#15247",
			text:  "a deposed leader may revoke live leases",
			fixed: releases{{3, 5, 13, ""}},
		}, {
			name: "inconsistent-revision-after-crash", issues: "#13766",
			text:  "members may disagree after a crash under load",
			fixed: releases{{3, 5, 3, ""}},
		}, {
			name: "lost-write-of-single-member", issues: "#14370",
			text:  "a single member may lose an acknowledged write in a crash",
			fixed: releases{{3, 5, 5, ""}},
		}, {
			name: "diverging-revisioned-range", issues: "#18667",
			text:  "a Txn with a range at an explicit revision may let members diverge; writ sends none",
			fixed: releases{{3, 7, 0, "rc.0"}},
		}, {
			name: "nested-txn-escapes-quota", issues: "#22139",
			text:  "writes in nested Txns do not count against the quota, so the database may outgrow it",
			fixed: releases{{3, 6, 14, ""}, {3, 7, 1, ""}},
		}, {
			name: "member-update-promotes-learner", issues: "#21736",
			text:  "updating a member may promote a learner",
			fixed: releases{{3, 6, 12, ""}},
		}, {
			name: "no-member-add-with-one-down", issues: "#21667",
			text:  "a member cannot be added while another is down",
			fixed: releases{{3, 6, 11, ""}},
		}, {
			name:  "range-stream-aliasing",
			text:  "a streamed range may alias the index's memory",
			since: Version{3, 7, 0, ""},
			fixed: releases{{3, 7, 3, ""}},
		}, {
			name:  "not-recommended",
			text:  "the version is older than those that writ is tested for",
			fixed: recommended(),
		}, {
			name: "panic-on-two-snapshots", issues: "#18055",
			text: "a member may panic when it takes two snapshots in a short time; it recovers by restarting",
		},
	}
}
