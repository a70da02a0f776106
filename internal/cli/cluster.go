package cli

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// explain is `writ explain`.
type explain struct{}

func (x *explain) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "explain RUN [TASK]",
		Short:   "Say what every unfinished task waits for, and which record says so",
		GroupID: groupRuns,
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			return x.run(c.Context(), a, args[0], strings.Join(args[1:], ""))
		},
	}
	a.asks(c)
	a.answers(c)
	return c
}

func (x *explain) run(ctx context.Context, a *app, run, task string) error {
	ctx, cancel := a.bound(ctx, requestTime)
	defer cancel()
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	answer, err := s.runs.ExplainRun(ctx, &writv1.ExplainRunRequest{Run: run, Task: task})
	if err != nil {
		return fmt.Errorf("explain run %s: %w", run, err)
	}
	if a.json {
		return a.document(answer)
	}
	r := answer.GetRun()
	if len(answer.GetReasons()) == 0 {
		a.printf("%s %s: nothing waits\n", r.GetRun(), runState(r.GetState()))
		return nil
	}
	t := &table{head: []string{"TASK", "WAITS FOR", "SINCE", "WHY", "RECORD"}, right: []int{2}}
	for _, reason := range answer.GetReasons() {
		name := reason.GetTask()
		if name == "" {
			name = "(the run)"
		}
		record := none
		if reason.GetRecord() != "" {
			record = fmt.Sprintf("%s at revision %d", reason.GetRecord(), reason.GetRevision())
		}
		t.row(name, reason.GetCode(), span(reason.GetSince(), nil, a.env.Now()), oneLine(reason.GetText()), record)
	}
	a.show(t)
	return nil
}

// statusOf is `writ status`.
type statusOf struct{}

func (s *statusOf) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "status",
		Short:   "Show replicas, etcd members, workers and what is active",
		GroupID: groupCluster,
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return s.run(c.Context(), a) },
	}
	a.asks(c)
	a.answers(c)
	return c
}

func (s *statusOf) run(ctx context.Context, a *app) error {
	ctx, cancel := a.bound(ctx, requestTime)
	defer cancel()
	at, err := a.connect()
	if err != nil {
		return err
	}
	defer at.close()
	answer, err := at.admin.GetStatus(ctx, &writv1.GetStatusRequest{})
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	if a.json {
		return a.document(answer)
	}
	a.printf("cluster %s as replica %s sees it, at revision %d", answer.GetCluster(), answer.GetReplica(), answer.GetRevision())
	if answer.GetMirrorAge() != nil {
		a.printf(", known to be current %s ago", seconds(answer.GetMirrorAge()))
	}
	a.printf("\n%s, %s, %s%s\n", count(int(answer.GetActiveRuns()), "active run", "active runs"),
		count(int(answer.GetLiveAttempts()), "live attempt", "live attempts"),
		count(int(answer.GetReadyTasks()), "ready task", "ready tasks"), depth(answer))
	for _, h := range answer.GetHolds() {
		a.printf("held back: %s\n", h)
	}
	a.printf("\n")
	a.showReplicas(answer.GetReplicas())
	a.printf("\n")
	a.showMembers(answer.GetMembers())
	a.printf("\n")
	a.showWorkers(answer.GetWorkers())
	if len(answer.GetPrevented()) > 0 {
		a.printf("\n")
		t := &table{head: []string{"PREVENTED", "WRITES"}, right: []int{1}}
		for _, rule := range slices.Sorted(maps.Keys(answer.GetPrevented())) {
			t.row(rule, strconv.FormatInt(answer.GetPrevented()[rule], 10))
		}
		a.show(t)
	}
	return nil
}

// depth tells which queues ready tasks wait in, and for how long.
func depth(answer *writv1.GetStatusResponse) string {
	var parts []string
	for _, q := range slices.Sorted(maps.Keys(answer.GetReadyByQueue())) {
		parts = append(parts, fmt.Sprintf("%d in queue %s", answer.GetReadyByQueue()[q], q))
	}
	if answer.GetOldestReady() != nil {
		parts = append(parts, "the oldest for "+seconds(answer.GetOldestReady()))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func (a *app) showReplicas(replicas []*writv1.ReplicaStatus) {
	t := &table{head: []string{"REPLICA", "ADDRESS", "ROLE", "TERM", "SINCE", "VERSION"}, right: []int{3}}
	for _, r := range replicas {
		role, term := cell{text: "follows"}, none
		if r.GetLeader() {
			role, term = cell{text: "leads", colour: green}, strconv.FormatInt(r.GetTerm(), 10)
		}
		t.rows = append(t.rows, []cell{
			{text: r.GetReplica()}, {text: r.GetAddress()}, role, {text: term}, {text: instant(r.GetSince())}, {text: or(r.GetVersion())},
		})
	}
	a.show(t)
}

func (a *app) showMembers(members []*writv1.MemberStatus) {
	t := &table{head: []string{"ETCD MEMBER", "ENDPOINTS", "ROLE", "SIZE", "IN USE", "VERSION"}, right: []int{3, 4}}
	for _, m := range members {
		role, whole, used := cell{text: "follows"}, size(m.GetSizeBytes()), size(m.GetInUseBytes())
		switch {
		case m.GetError() != "":
			role = cell{text: "no answer: " + oneLine(m.GetError()), colour: red}
			whole, used = none, none
		case m.GetLeader():
			role = cell{text: "leads", colour: green}
		}
		t.rows = append(t.rows, []cell{
			{text: m.GetName()},
			{text: strings.Join(m.GetEndpoints(), ",")},
			role,
			{text: whole},
			{text: used},
			{text: or(m.GetVersion())},
		})
	}
	a.show(t)
}

func (a *app) showWorkers(workers []*writv1.WorkerStatus) {
	t := &table{head: []string{"WORKER", "SLOTS", "QUEUES", "RUNS", "HOST", "SINCE", "REPLICA", "NOTE"}}
	for _, w := range workers {
		note := ""
		if d := w.GetDraining(); d != nil {
			note = strings.TrimSpace("drains " + oneLine(d.GetWhy()))
		}
		t.row(w.GetWorker(), fmt.Sprintf("%d of %d used", w.GetUsed(), w.GetSlots()), or(strings.Join(w.GetQueues(), ",")), workerRuns(w),
			or(w.GetHost()), instant(w.GetRegisteredAt()), or(w.GetReplica()), note)
	}
	a.show(t)
}

// workerRuns says what kinds of tasks a worker takes.
func workerRuns(w *writv1.WorkerStatus) string {
	var kinds []string
	if w.GetProcesses() {
		kinds = append(kinds, "processes")
	}
	if len(w.GetHandlers()) > 0 {
		kinds = append(kinds, "handlers "+some(w.GetHandlers(), 3))
	}
	return or(strings.Join(kinds, ", "))
}

// workers is `writ workers` and `writ worker list`.
type workers struct{ name string }

func (w *workers) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   w.name,
		Short: "List the workers that live",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return w.run(c.Context(), a) },
	}
	if w.name == "workers" {
		c.GroupID = groupCluster
	}
	a.asks(c)
	a.answers(c)
	return c
}

func (w *workers) run(ctx context.Context, a *app) error {
	ctx, cancel := a.bound(ctx, requestTime)
	defer cancel()
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	answer, err := s.admin.ListWorkers(ctx, &writv1.ListWorkersRequest{})
	if err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	if a.json {
		return a.document(answer)
	}
	if len(answer.GetWorkers()) == 0 {
		a.notef("no workers; writ worker --server %s starts one\n", a.servers())
		return nil
	}
	a.showWorkers(answer.GetWorkers())
	return nil
}

// auditOf is `writ audit`.
type auditOf struct{}

func (u *auditOf) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "audit [RUN]",
		Short:   "Check the invariants over the records and the history that etcd keeps",
		GroupID: groupCluster,
		Args:    cobra.MaximumNArgs(1),
		Long: `Reads all records, or those of one run, and every event that etcd still keeps,
and checks that they keep the invariants. It changes nothing. The exit code is
1 where it finds a violation.`,
		RunE: func(c *cobra.Command, args []string) error { return u.run(c.Context(), a, strings.Join(args, "")) },
	}
	a.asks(c)
	a.answers(c)
	return c
}

func (u *auditOf) run(ctx context.Context, a *app, run string) error {
	ctx, cancel := a.bound(ctx, auditTime)
	defer cancel()
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	answer, err := s.admin.Audit(ctx, &writv1.AuditRequest{Run: run})
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	found := len(answer.GetViolations())
	if a.json {
		err = a.document(answer)
	} else {
		a.showAudit(answer)
	}
	if err == nil && found > 0 {
		return verdict(ExitBad, "the audit found %s", count(found, "violation", "violations"))
	}
	return err
}

func (a *app) showAudit(answer *writv1.AuditResponse) {
	if leaders := answer.GetLeaders(); len(leaders) > 0 {
		t := &table{head: []string{"LED", "FROM", "TO", "TERM"}, right: []int{3}}
		for i, l := range leaders {
			var until *timestamppb.Timestamp
			if i+1 < len(leaders) {
				until = leaders[i+1].GetSince()
			}
			t.row(l.GetReplica(), instant(l.GetSince()), instant(until), strconv.FormatInt(l.GetTerm(), 10))
		}
		a.show(t)
		a.printf("\n")
	}
	if violations := answer.GetViolations(); len(violations) > 0 {
		t := &table{head: []string{"BROKEN", "REVISION", "RECORD", "HOW"}, right: []int{1}}
		for _, v := range violations {
			t.rows = append(t.rows, []cell{
				{text: v.GetInvariant(), colour: red}, {text: strconv.FormatInt(v.GetRevision(), 10)}, {text: or(v.GetRecord())}, {text: oneLine(v.GetText())},
			})
		}
		a.show(t)
		a.printf("\n")
	}
	word := "clean"
	if n := len(answer.GetViolations()); n > 0 {
		word = count(n, "violation", "violations")
	}
	a.printf("%s: %s, %s, %s of revisions %d to %d\n", word, count(int(answer.GetRuns()), "run", "runs"),
		count(int(answer.GetAttempts()), "attempt", "attempts"), count(int(answer.GetEvents()), "event", "events"),
		answer.GetFromRevision(), answer.GetToRevision())
	if answer.GetTruncated() {
		a.notef("history before revision %d is compacted away; what happened then was not checked\n", answer.GetFromRevision())
	}
}

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		GroupID: groupCluster,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			a.printf("writ %s, %s, %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}

// version is the module's version as the build recorded it, with the commit
// where that is known.
func version() string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	v := build.Main.Version
	for _, s := range build.Settings {
		if s.Key == "vcs.revision" && !strings.Contains(v, s.Value[:min(12, len(s.Value))]) {
			v += " " + s.Value[:min(12, len(s.Value))]
		}
	}
	return v
}
