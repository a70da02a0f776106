package storetest

import (
	"time"

	"github.com/writ-sched/writ/internal/record"
)

const (
	sampleRun     record.RunID     = "census.20261201t023000z"
	sampleEnded   record.RunID     = "census.20261130t023000z"
	sampleSession record.SessionID = "m3v7k2qd6y4thn5a-2"
	sampleToken   record.Token     = "c4x2ns7qmv5jzpa3w6kdh9t2re"
)

// at is a moment of the night of the samples, in seconds after half past two.
func at(seconds float64) time.Time {
	return time.Date(2026, 12, 1, 2, 30, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

// Samples returns one record of every family, in a night in which a run of the
// census goes on and the one before has ended. They stand in the golden files
// of package keyspace and in the manual.
func Samples() []record.Stored {
	return append(sampleActive(), sampleHistory()...)
}

// SampleAttempt is a row that has lived a full life: sent out as an intent,
// claimed, and ended by its process.
func SampleAttempt() record.Attempt {
	return record.Attempt{
		Schema: record.Schema, Run: sampleRun, Task: "count", Instance: "00003", Attempt: 2, Kind: record.KindExec,
		State: record.Failed, EnteredAt: at(13.25), Token: sampleToken, Worker: "crane", Session: sampleSession,
		Queue: "default", Pool: "disks", OnLost: record.OnLostRetry, TTL: record.Duration(15 * time.Second), Failures: 1,
		Cause: record.Because(record.CauseExitCode, "exit code 1"), Exit: &record.Exit{Code: 1},
		Transitions: []record.Transition{
			{State: "queued", At: at(12.000000125), Rule: record.RuleStart, By: "replica/r7qk2", Term: 4117, Write: "5nq3x7ktz4m2d6"},
			{State: "running", At: at(12.004), Rule: record.RuleClaim, By: "session/" + string(sampleSession), Write: "j6w2e4vbs3k5q"},
			{State: "failed", At: at(13.25), Rule: record.RuleFinish, By: "session/" + string(sampleSession), Write: "y2pd7aq4kx6mz"},
		},
	}
}

func sampleActive() []record.Stored {
	row := SampleAttempt()
	return []record.Stored{
		{Key: record.MetaKey(), Value: record.Meta{Schema: record.Schema, Cluster: "k5t3mz7q2xw4n", CreatedAt: at(-86400), Write: "a2b3c4d5e6f7g"}},
		{Key: record.ElectionKey(0x694d71ddacfda227), Value: record.Blob(`{"replica":"r7qk2","address":"127.0.0.1:7400"}`)},
		{Key: record.RunKey(sampleRun), Value: record.Run{
			Schema: record.Schema, Run: sampleRun, Workflow: "census", Revision: 3, State: record.RunRunning,
			EnteredAt: at(0.5), CreatedAt: at(0.25), StartedAt: at(0.5), Trigger: record.TriggerSchedule, LogicalDate: at(0), Round: 1,
			Transitions: []record.Transition{
				{State: "running", At: at(0.5), Rule: record.RuleCreate, By: "replica/r7qk2", Term: 4117, Write: "q7m2k5x3z4w6n"},
			},
		}},
		{Key: record.ClearKey(sampleRun, 1), Value: record.Clear{
			Schema: record.Schema, Run: sampleRun, Seq: 1, Tasks: []record.TaskID{"merge", "report"}, By: "person/ada", Why: "shard 3 was incomplete", At: at(40), Write: "c5v2n7q3k4m6x",
		}},
		{Key: record.AttemptKey(row.Ref()), Value: row},
		{Key: record.WorkerKey("crane", sampleSession), Value: record.Worker{
			Schema: record.Schema, Worker: "crane", Session: sampleSession, Lease: 0x694d71ddacfda30b, TTL: record.Duration(15 * time.Second), Slots: 8,
			Queues: []record.Queue{"default"}, Labels: map[string]string{"disk": "ssd"}, Handlers: []string{"noop"}, Processes: true,
			Host: "crane-1", Protocol: 1, RegisteredAt: at(-60), Write: "w4k2m7q5x3z6n",
		}},
		{Key: record.SessionKey("crane", sampleSession), Value: record.Session{
			Schema: record.Schema, Worker: "crane", Session: sampleSession, Stream: 4, Replica: "r7qk2", Host: "crane-1",
			Predecessor: "m3v7k2qd6y4thn5a-1", Write: "w4k2m7q5x3z6n",
		}},
		{Key: record.ReplicaKey("r7qk2"), Value: record.Replica{
			Schema: record.Schema, Replica: "r7qk2", Address: "127.0.0.1:7400", Version: "0.1.0", Since: at(-90), Write: "r6n3k7q2x5z4m",
		}},
		{Key: record.WorkflowKey("census"), Value: record.Workflow{
			Schema: record.Schema, Workflow: "census", Revision: 3, Digest: sampleDigest, UpdatedAt: at(-3600), By: "person/ada", Cursor: at(0), Write: "f2k7m4q6x3z5n",
		}},
		{Key: record.UnprovenKey(row.Ref()), Value: record.Unproven{
			Schema: record.Schema, Run: row.Run, Task: row.Task, Instance: row.Instance, Attempt: row.Attempt, Worker: "crane", Session: sampleSession,
			Fenced: true, TTL: record.Duration(15 * time.Second), Since: at(30), Write: "u3k6m2q7x5z4n",
		}},
		{Key: record.HolderKey("volume/data 1", 0), Value: record.Holder{
			Schema: record.Schema, Holder: "volume/data 1", Slot: 0, Attempt: row.Ref(), Write: "5nq3x7ktz4m2d6",
		}},
		{Key: record.PoolKey("disks"), Value: record.PoolLimit{Schema: record.Schema, Pool: "disks", Slots: 4, By: "person/ada", At: at(-7200), Write: "p5k3m7q2x6z4n"}},
		{Key: record.BackfillKey("census-november"), Value: record.Backfill{
			Schema: record.Schema, Backfill: "census-november", Workflow: "census", From: at(-30 * 86400), To: at(-86400), Cursor: at(-20 * 86400), By: "person/ada", Write: "b7k2m5q3x4z6n",
		}},
		{Key: record.SignalKey(sampleRun, "approved"), Value: record.Signal{
			Schema: record.Schema, Signal: "approved", Run: sampleRun, By: "person/ada", At: at(50), Value: `{"by":"ada"}`, Write: "s4k7m3q2x5z6n",
		}},
	}
}

const sampleSpec = `{"name":"census","tasks":[{"id":"count","run":"find . -type f | wc -l"}]}`

// night is the time from one run of the census to the next.
const night = 24 * time.Hour

const sampleDigest = "sha256:9f2c4a7be1d05c3386f1aa0d4b7752e96c8e13fd2b604a95d7c8e0f3b1a2c4d6"

func sampleHistory() []record.Stored {
	row := SampleAttempt()
	row.Run, row.State, row.Failures, row.Attempt = sampleEnded, record.Success, 0, 1
	row.Cause, row.Exit, row.ResultBytes = record.Cause{}, &record.Exit{}, 15
	row.EnteredAt, row.Transitions[2].State = row.EnteredAt.Add(-night), "success"
	for i := range row.Transitions {
		row.Transitions[i].At = row.Transitions[i].At.Add(-night)
	}
	run := record.Run{
		Schema: record.Schema, Run: sampleEnded, Workflow: "census", Revision: 3, State: record.RunSuccess, Phase: record.PhaseEnding,
		EnteredAt: at(-86340), CreatedAt: at(-86400), StartedAt: at(-86400), EndedAt: at(-86340), Trigger: record.TriggerSchedule,
		LogicalDate: at(-86400), Round: 1, Pages: 1, Cause: record.Because(record.CauseTasksSucceeded, ""),
		Transitions: []record.Transition{
			{State: "running", At: at(-86400), Rule: record.RuleCreate, By: "replica/r7qk2", Term: 4117, Write: "z5m2k7x3q4w6n"},
			{State: "success", At: at(-86340), Rule: record.RuleFinishRun, By: "replica/r7qk2", Term: 4117, Write: "d3m7k2x5q6w4n"},
		},
	}
	tasks := map[record.AttemptState]int{record.Success: 1}
	return []record.Stored{
		{Key: record.RevisionKey("census", 3), Value: record.Revision{
			Schema: record.Schema, Workflow: "census", Revision: 3, Digest: sampleDigest, Bytes: len(sampleSpec),
			Spec:      sampleSpec,
			CreatedAt: at(-3600), By: "person/ada", Write: "f2k7m4q6x3z5n",
		}},
		{Key: record.ChunkKey("atlas", 1, 1), Value: record.Blob(`{"name":"atlas","tasks":[`)},
		{Key: record.InputKey(sampleRun), Value: record.Input{Schema: record.Schema, Run: sampleRun, Params: map[string]string{"root": "src"}, Write: "q7m2k5x3z4w6n"}},
		{Key: record.ResultKey(row.Ref()), Value: record.Blob(`{"files":10412}`)},
		{Key: record.EndedKey(sampleEnded), Value: record.Ended{
			Schema: record.Schema, Run: run, RunRev: 3977, Tasks: tasks, Attempts: 1, Pages: 1, Write: "e6k3m7q2x5z4n",
		}},
		{Key: record.PageKey(sampleEnded, 1), Value: record.EndedPage{
			Schema: record.Schema, Run: sampleEnded, Page: 1, Rows: []record.EndedRow{{Attempt: row, CreateRev: 3802, ModRev: 3921}}, Write: "g5k7m2q3x4z6n",
		}},
		{Key: record.IndexKey(run.EndedAt, sampleEnded), Value: record.IndexLine{
			Schema: record.Schema, Run: sampleEnded, Workflow: "census", Revision: 3, State: record.RunSuccess, Trigger: record.TriggerSchedule,
			LogicalDate: run.LogicalDate, CreatedAt: run.CreatedAt, StartedAt: run.StartedAt, EndedAt: run.EndedAt, Tasks: tasks, Attempts: 1, Pages: 1,
			Write: "e6k3m7q2x5z4n",
		}},
		{Key: record.CompactKey(), Value: record.Compaction{Schema: record.Schema, Rev: 4001, At: at(-30), Write: "h2k5m7q3x4z6n"}},
	}
}
