package hooks

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed packs/*.yaml
var packFiles embed.FS

// Packs lists the names of the starter rules, in the order in which they stand
// in a file.
func Packs() []string { return []string{"secrets", "git", "files", "network"} }

// Starter is the text of a hooks.yaml with the rules of the given packs; none
// means all. Every rule is a verdict without a program, and a comment says in
// plain words what it is for. An unknown name is an error.
func Starter(packs ...string) (string, error) {
	for _, p := range packs {
		if !slices.Contains(Packs(), p) {
			return "", fmt.Errorf("there are no starter rules named %q; known: %s", clip(p), strings.Join(Packs(), ", "))
		}
	}
	var out strings.Builder
	out.WriteString(starterHead)
	for _, p := range Packs() {
		if len(packs) > 0 && !slices.Contains(packs, p) {
			continue
		}
		rules, err := packFiles.ReadFile("packs/" + p + ".yaml")
		if err != nil {
			return "", fmt.Errorf("read the starter rules %s: %w", p, err)
		}
		out.WriteString("\n" + spelledOut().Replace(string(rules)))
	}
	return out.String(), nil
}

const starterHead = `# Starter rules for Fermata. They are yours: change them, delete what disturbs
# you, add your own. After a change, run: fermata hooks check
#
# Each rule asks you before an agent does something; the few that block are for
# what nobody wants. They look at the text of a command and stop mistakes, not
# somebody who hides what a command does.
#
# A regex begins with the places where a command can begin: at the start, behind
# ; & | ( or a new line, behind sudo, env, xargs and the like, in sh -c "…" and
# behind -exec. So "grep 'git push' docs" is not taken for a push.
version: 1
hooks:
`

// spelledOut puts the parts that rules share into them.
func spelledOut() *strings.Replacer {
	const (
		// words is the rest of one simple command.
		words = `[^;&|\n]*`
		// end is the end of a word.
		end = `(?=$|[\s;&|)"'` + "`" + `])`
		// ssh begins the name of a file in the directory of SSH.
		ssh = `(?:^|[\s/'"=@<>:(])\.ssh/`
	)
	return strings.NewReplacer(
		"{{command}}", `(?:^|[;&|({\n`+"`"+`]|\s(?:-c\s*["']|-exec(?:dir)?\s|(?:sudo|env|xargs)\s))\s*(?:(?:sudo|doas|env|xargs|nohup|time|nice|exec|command|do|then|else)\s+|-\S+\s+(?:\w+\s+)?|\w+=\S*\s+)*(?:[^\s;&|("'`+"`"+`]*/)?`,
		"{{git}}", `git(?:\s+(?:-[Cc]\s+\S+|-\S+))*\s+`,
		"{{words}}", words,
		"{{end}}", end,
		"{{everything}}", `["']?(?:/|~|\$HOME|\$\{HOME\}|/(?:bin|boot|dev|etc|home|lib\w*|opt|proc|root|sbin|srv|sys|usr|var|Users|System|Library|Applications))(?:/?\*?|/\.)["']?`+end,
		"{{intoshell}}", `\|\s*(?:sudo\s+(?:-\S+\s+)*)?(?:\S*/)?(?:(?:ba|z|da|k|fi)?sh|python[\d.]*|node|perl|ruby)\b`,
		"{{ssh}}", ssh,
		"{{outside}}", `(?:\.\./|~/\.|(?:\$HOME|\$\{HOME\}|/home/[^/\s]+|/Users/[^/\s]+|/root)/\.|/(?:bin|boot|etc|lib\w*|opt|sbin|srv|sys|usr|Library|System|Applications)/|/dev/(?!null\b|std|tty\b|fd/)|/var/(?!folders/|tmp/))`,
		"{{secret}}", `(?:`+
			`(?:^|[\s/'"=@<>:(])\.env(?:\.(?!example|sample|template|dist|defaults)[\w.-]+)?(?![\w.-])`+
			`|`+ssh+`(?!known_hosts|authorized_keys|config\b|[\w.-]+\.pub\b)`+
			`|(?:^|[\s/'"=@<>:(])(?:\.aws/credentials|\.netrc|\.git-credentials|\.pgpass|\.npmrc|\.pypirc|\.docker/config\.json|\.kube/config|\.gnupg/|application_default_credentials\.json)`+
			`|\bid_(?:rsa|dsa|ecdsa|ed25519)\b(?!\.pub)`+
			`|(?:^|[\s/'"=@<>:])[\w.-]+\.(?:pem|p12|pfx|jks|keystore|key)(?=$|[\s;&|)"'`+"`"+`]))`,
	)
}
