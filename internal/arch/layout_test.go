package arch_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkTop finds what has no place at the top level (HOUSE 4.14).
func checkTop(names []string) []string {
	may := []string{
		"cmd", "proto", "pkg", "internal", "scripts", "integration", "go.mod", "go.sum", "buf.yaml", "README.md",
		"docs", "examples", "deploy", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md",
	}
	var found []string
	for _, name := range names {
		if !strings.HasPrefix(name, ".") && !slices.Contains(may, name) {
			found = append(found, name+": the top level holds "+strings.Join(may, " ")+" and dotfiles; scripts/ is the one door to everything else")
		}
	}
	return found
}

// checkMachinePaths finds paths of the machine that somebody worked on.
func checkMachinePaths(path, text string) []string {
	// Written in two parts, so that this file does not find itself.
	pattern := regexp.MustCompile(`(?m)(^|[^A-Za-z0-9_.~/-])/` + `(work|farm|root|home|Users)/[A-Za-z0-9._-]`)
	var found []string
	for i, line := range strings.Split(text, "\n") {
		if pattern.MatchString(line) {
			found = append(found, fmt.Sprintf("%s:%d: a path of one machine: %s", path, i+1, strings.TrimSpace(line)))
		}
	}
	return found
}

// checkLinks finds links of a Markdown document that lead nowhere: relative
// ones to files that are not there, and anchors that the target does not have.
// read returns the text of a file below the module; a directory is "".
func checkLinks(path, text string, read func(path string) (string, error)) []string {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	var found []string
	for i, line := range strings.Split(withoutCode(text), "\n") {
		for _, m := range link.FindAllStringSubmatch(line, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") {
				continue // another site
			}
			whole := path
			body := text
			if target != "" {
				whole = filepath.ToSlash(filepath.Join(filepath.Dir(path), target))
				var err error
				if body, err = read(whole); err != nil {
					found = append(found, fmt.Sprintf("%s:%d: the link to %s leads nowhere", path, i+1, m[1]))
					continue
				}
			}
			if anchor != "" && strings.HasSuffix(whole, ".md") && !slices.Contains(anchors(body), anchor) {
				found = append(found, fmt.Sprintf("%s:%d: %s has no heading #%s", path, i+1, whole, anchor))
			}
		}
	}
	return found
}

// withoutCode blanks fenced blocks and code spans, and keeps the lines.
func withoutCode(text string) string {
	fenced := false
	span := regexp.MustCompile("`[^`]*`")
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		mark := strings.HasPrefix(strings.TrimSpace(line), "```")
		if mark {
			fenced = !fenced
		}
		if fenced || mark {
			lines[i] = ""
			continue
		}
		lines[i] = span.ReplaceAllString(line, "")
	}
	return strings.Join(lines, "\n")
}

// anchors lists the headings of a document as their links name them.
func anchors(text string) []string {
	var all []string
	drop := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		title := strings.TrimLeft(line, "#")
		if fenced || title == line || !strings.HasPrefix(title, " ") {
			continue
		}
		slug := drop.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
		all = append(all, strings.ReplaceAll(slug, " ", "-"))
	}
	return all
}

func TestTopLevelHoldsWhatTheHouseAllows(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		// What builds leave behind, as .gitignore has it.
		if e.Name() != "bin" && e.Name() != "dist" {
			names = append(names, e.Name())
		}
	}
	none(t, checkTop(names))
}

func TestNoFileNamesAMachine(t *testing.T) {
	t.Parallel()
	var found []string
	walk(t, func(path string) {
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		if filepath.Base(path) != "go.sum" && !bytes.Contains(text, []byte{0}) {
			found = append(found, checkMachinePaths(path, string(text))...)
		}
	})
	none(t, found)
}

func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	t.Parallel()
	read := func(path string) (string, error) {
		full := filepath.Join(root, path)
		if st, err := os.Stat(full); err == nil && st.IsDir() {
			return "", nil
		}
		text, err := os.ReadFile(full)
		return string(text), err
	}
	var found []string
	walk(t, func(path string) {
		if !strings.HasSuffix(path, ".md") || strings.Contains(path, "testdata/") {
			return
		}
		text, err := read(path)
		require.NoError(t, err)
		found = append(found, checkLinks(path, text, read)...)
	})
	none(t, found)
}

func TestLayoutCheckersFindWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	require.Len(t, checkTop([]string{"cmd", ".github", "Makefile", "tools"}), 2)

	require.Len(t, checkMachinePaths("a.md", "see /"+"home/jo/src and (/"+"work/x)\n/"+"root/go"), 2)
	require.Empty(t, checkMachinePaths("a.md", "https://x.org/"+"work/x ~/"+"work/x scripts/"+"home/x /"+"home/"))

	read := func(path string) (string, error) {
		switch path {
		case "docs/b.md":
			return "# Top\n## What happens when …\n```\n# no heading\n```\n", nil
		case "internal/record":
			return "", nil
		}
		return "", os.ErrNotExist
	}
	good := "[b](b.md) [h](b.md#what-happens-when-) [d](../internal/record/) [x](https://x.org/y#z) [s](#own)\n# Own\n`[c](no.md)`\n```\n[c](no.md)\n```\n"
	require.Empty(t, checkLinks("docs/a.md", good, read))
	found := checkLinks("docs/a.md", "[b](c.md)\n[h](b.md#no-heading) [s](#none)\n", read)
	require.Len(t, found, 3)
	require.Contains(t, found[0], "docs/a.md:1: the link to c.md leads nowhere")
	require.Contains(t, found[1], "docs/b.md has no heading #no-heading")
	require.Contains(t, found[2], "docs/a.md has no heading #none")
}
