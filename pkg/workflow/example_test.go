package workflow_test

import (
	"fmt"
	"time"

	"github.com/writ-sched/writ/pkg/workflow"
)

func Example() {
	wf := workflow.New("census", workflow.Description("Counts a tree in shards"),
		workflow.Defaults(workflow.Idempotent(), workflow.Timeout(5*time.Minute)))
	wf.Param("root", workflow.Default("/usr/share"), workflow.Description("The tree to count"))

	list := wf.Task("list", workflow.Run(`find "$WRIT_PARAM_ROOT" -type f > "$WRIT_OUTPUT_DIR/files"`))
	var counts []*workflow.Task
	for shard := range 3 {
		counts = append(counts, wf.Task(fmt.Sprintf("count-%d", shard),
			workflow.Command("./count", "--shard", fmt.Sprint(shard)), workflow.Needs(list),
			workflow.Retries(workflow.Retry{Limit: 3, Delay: 10 * time.Second, Backoff: 2, Jitter: 0.1})))
	}
	merge := wf.Task("merge", workflow.Handler("census.Merge", map[string]int{"shards": len(counts)}), workflow.Needs(counts...))
	wf.Task("clean", workflow.Run("./clean"), workflow.Needs(merge), workflow.Trigger(workflow.AllDone))

	m, err := wf.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range m.GetTasks() {
		fmt.Println(t.GetId(), t.GetNeeds(), t.GetTimeout().AsDuration())
	}
	// Output:
	// list [] 5m0s
	// count-0 [list] 5m0s
	// count-1 [list] 5m0s
	// count-2 [list] 5m0s
	// merge [count-0 count-1 count-2] 5m0s
	// clean [merge] 5m0s
}

func ExampleWorkflow_Build() {
	wf := workflow.New("wrong")
	wf.Task("idle")
	wf.Task("both", workflow.Run("true"), workflow.Command("true"))
	_, err := wf.Build()
	fmt.Println(err)
	// Output:
	// tasks.idle: does nothing, expected one of run, command and handler
	// tasks.both: has run and command, expected one of run, command and handler
}

// Options are values; a list of them is shared by giving it to several tasks.
func ExampleTaskOption() {
	gpu := []workflow.TaskOption{workflow.Queue("gpu"), workflow.Priority(100), workflow.QueueTimeout(30 * time.Minute)}

	wf := workflow.New("heavy")
	wf.Task("train", append(gpu, workflow.Command("./train"))...)
	m, err := wf.Build()
	fmt.Println(m.GetTasks()[0].GetQueue(), m.GetTasks()[0].GetPriority(), err)
	// Output: gpu 100 <nil>
}
