package store

import "github.com/writ-sched/writ/internal/batch"

// Classify is classify, for its table of cases.
func Classify(err error) batch.Class { return classify(err) }
