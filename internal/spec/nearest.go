package spec

// Nearest returns the known word that word was probably meant to be, or "". A
// word is near where at most two letters, and at most a third of them, differ.
func Nearest[S ~string](word S, known []S) S {
	var best S
	// Words of another length are further away than best anyway, so most of a
	// long list costs a comparison of lengths.
	least := min(2, max(len(word)/3, 1)) + 1
	for _, k := range known {
		if k == word || k == "" || len(word) > maxNearest || abs(len(k)-len(word)) >= least {
			continue
		}
		if d := distance(string(word), string(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// maxNearest is longer than any name of ours; a longer word is no misspelling.
const maxNearest = 64

// distance counts the letters to insert, drop, replace or swap with their
// neighbour to get from a to b.
func distance(a, b string) int {
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}

func abs(n int) int { return max(n, -n) }
