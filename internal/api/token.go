package api

import (
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/writ-sched/writ/internal/record"
)

// workflowPlace is where a list of workflows goes on: behind a name.
type workflowPlace struct {
	Name string `json:"name"`
}

// runPlace is where a list of runs goes on: behind a run that was created or,
// once the list has come to ended ones, ended at that time.
type runPlace struct {
	Ended bool         `json:"ended,omitempty"`
	At    time.Time    `json:"at,omitzero"`
	Run   record.RunID `json:"run,omitempty"`
}

// writeToken makes the text of a place. It means nothing to its reader.
func writeToken(place any) string {
	text, err := json.Marshal(place)
	if err != nil {
		return "" // a struct of texts and times is always JSON
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// readToken reads what writeToken made; an empty token leaves the zero place.
func readToken(token string, place any) error {
	if token == "" {
		return nil
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(text, place)
	}
	if err != nil {
		return invalid("page_token", "send what next_page_token held", "is none of this server's")
	}
	return nil
}
