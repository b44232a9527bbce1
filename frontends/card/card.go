package card

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// Card is a question made ready to be shown. All its strings are escaped.
type Card struct {
	Title string // the tool, or what sort of message it is
	// Sections is the whole card from top to bottom. A screen may draw it alone.
	Sections []Section
	Fields   []Field
	Stats    string // what its edits add and take away, as in "+12 −3"; "" for none or not known
	// Changes are what differs from Since, the version that the person said yes to,
	// or, when First is set, that the agent asked for before a hook changed it.
	Changes []Change
	// ChangedBy are the hooks that did, in their order, as in
	// "add-region (global hooks.yaml:14)".
	ChangedBy []string
	ChangedIn string // one sentence that says which arguments; "" when none are
	Was       string // what the old side of a change is called
	First     bool
	Since     int // -1 when nothing changed
	// Missing says that what changed did not travel with the question and is not in
	// Changes: fetch the version Since and make the card with [NewSince].
	Missing bool
	// Reason is whole; several lines are possible. Quoted says that it is somebody
	// else's words, to be shown as such; else it is our default sentence.
	Reason      string
	ReasonLabel string
	Quoted      bool
	Hook        string // the hook's id
	Origin      string // scope, file and line of the hook
	Session     string // agent and project, as in "claude · myproj"
	// Path is who in the agent wants it, as in "main > reviewer#1"; "" when it is
	// the agent itself.
	Path string
	// Digest is of the bytes that Fields show; an answer names it.
	Digest events.Digest
	// Genuine says that these are the bytes that the question is about. A
	// card that is not genuine must not be answered.
	Genuine bool
}

// Field is one named value. A message, and any other value that is no object, is
// one field, which [New] names and [Fields] does not.
type Field struct {
	Name  string
	Text  string // a string's own characters, any other value's JSON
	Raw   string // the same, not escaped: for a clipboard, never for a screen
	Bytes int    // length of Raw
	JSON  bool   // Text is JSON, not a string's characters
	Bad   bool   // the arguments could not be read as JSON: Text is all of them
	// Claimed says that it is what the model says of the call, such as a
	// description. It must never stand in for the call.
	Claimed bool
}

// New makes the card of a question from the canonical JSON of its arguments.
// home is the directory of the person who reads it, as in [Origin].
func New(q events.Question, args []byte, home string, w words.Words) Card {
	c := base(q, args, home, w)
	compared, complete := compareSent(q.Changed)
	c.Missing = !complete
	c.finish(q, args, compared, w)
	return c
}

// NewSince is [New] for a question whose changes did not travel with it: before is
// the canonical JSON of the version Card.Since.
func NewSince(q events.Question, before, args []byte, home string, w words.Words) Card {
	c := base(q, args, home, w)
	var names []string
	for _, change := range q.Changed {
		names = append(names, change.Name)
	}
	c.finish(q, args, compareVersions(names, before, args), w)
	return c
}

// base is a card without its sections.
func base(q events.Question, args []byte, home string, w words.Words) Card {
	c := Card{
		Title:       Line(q.Tool.Name),
		Fields:      Fields(args),
		Reason:      Escape(strings.TrimRight(q.Reason, "\n")),
		ReasonLabel: w.Say(words.Reason),
		Quoted:      strings.TrimSpace(q.Reason) != "",
		Hook:        Line(q.Hook.ID),
		Origin:      Origin(q.Hook, q.ProjectPath, home, w),
		Session:     Session(q.Agent, q.ProjectPath),
		Digest:      events.DigestOf(args),
		Since:       -1,
	}
	for i := range c.Fields {
		if c.Fields[i].Name == "" {
			c.Fields[i].Name = Whole(q.Kind, w)
		}
	}
	if q.Path != events.MainPath {
		c.Path = Line(q.Path)
	}
	c.Genuine = c.Digest == q.Version.Digest
	if q.Kind != events.KindToolCall || c.Title == "" {
		c.Title = w.Kind(string(q.Kind))
	}
	if !c.Quoted {
		c.Reason = w.Say(words.NoReason, c.Hook)
	}
	for _, h := range q.ChangedBy {
		c.ChangedBy = append(c.ChangedBy, w.Coded(Line(h.ID), Origin(h, q.ProjectPath, home, w)))
	}
	return c
}

// finish adds what changed, and puts the sections together.
func (c *Card) finish(q events.Question, args []byte, compared []comparison, w words.Words) {
	if len(q.Changed) > 0 {
		c.First, c.Since = q.Previous < 0, max(q.Previous, 0)
		sentence, was := words.HookChanged, words.Was
		if c.First {
			sentence, was = words.ChangedBefore, words.AskedFor
		}
		c.ChangedIn, c.Was = w.Say(sentence, w.List(changedNames(q, w))), w.Say(was)
	}
	for i := range compared {
		if compared[i].Name == "" {
			compared[i].Name = Whole(q.Kind, w)
		}
	}
	c.sections(args, compared, w)
}

func changedNames(q events.Question, w words.Words) []string {
	var names []string
	for _, change := range q.Changed {
		name := Line(change.Name)
		if name == "" {
			name = Whole(q.Kind, w)
		}
		names = append(names, name)
	}
	return names
}

// Whole names a value that has no name of its own: an input is a message.
func Whole(k events.Kind, w words.Words) string {
	if k == events.KindToolCall {
		return w.Say(words.Value)
	}
	return w.Say(words.Message)
}

// Origin says where a hook stands: scope, file and line. A global file has its
// name alone, since the scope says in which directory; a file of the project is
// named from the project's root; any other below home, the reader's directory
// or "", from ~.
func Origin(h events.Hook, project, home string, w words.Words) string {
	file := h.File
	if h.Scope == events.ScopeGlobal && file != "" {
		file = filepath.Base(file)
	} else if rel, ok := below(project, file); ok {
		file = rel
	} else if rel, ok := below(home, file); ok {
		file = "~/" + rel
	}
	return w.Scope(string(h.Scope)) + " " + Line(file) + ":" + strconv.Itoa(h.Line)
}

// below names a file from a directory that holds it.
func below(dir, file string) (rel string, ok bool) {
	if !filepath.IsAbs(dir) || !filepath.IsAbs(file) {
		return "", false
	}
	rel, err := filepath.Rel(dir, file)
	return rel, err == nil && filepath.IsLocal(rel)
}

// Session names a session by its agent and project.
func Session(agent events.Agent, project string) string {
	return Line(string(agent)) + " · " + Line(filepath.Base(project))
}

// Fields takes canonical JSON apart: an object's members in their order, any
// other value as one field without a name. Bytes that are no JSON come back
// whole as one field that is Bad: shown, not hidden.
func Fields(args []byte) []Field {
	fields, err := members(args)
	if err != nil {
		return []Field{{Text: Escape(string(args)), Raw: string(args), Bytes: len(args), JSON: true, Bad: true}}
	}
	return fields
}

func members(args []byte) ([]Field, error) {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	if !bytes.HasPrefix(bytes.TrimSpace(args), []byte("{")) {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		return []Field{newField("", raw)}, atEnd(dec)
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	var fields []Field
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		s, _ := name.(string) // an object's names are strings
		fields = append(fields, newField(s, raw))
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	return fields, atEnd(dec)
}

func atEnd(dec *json.Decoder) error {
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the value")
	}
	return nil
}

// commands are the names under which agents send what a shell reads. Read only.
var commands = []string{"command", "cmd", "script"}

func mannerOf(name string) manner {
	if slices.Contains(commands, name) {
		return command
	}
	return 0
}

// claims are the names under which a model speaks of the call itself. Read only.
var claims = []string{"description", "reason", "explanation", "justification"}

func newField(name string, raw json.RawMessage) Field {
	f := Field{Name: Line(name)}
	f.Raw, f.JSON = plainText(raw)
	f.Bytes = len(f.Raw)
	text, _ := laidOut(raw)
	f.Text = escape(text, mannerOf(name))
	f.Claimed = !f.JSON && slices.Contains(claims, name)
	return f
}

// plainText is what a value says: a string's characters, else its JSON. A string
// that has no characters for all of its bytes, which canonical JSON never has, is
// taken as its JSON too.
func plainText(raw json.RawMessage) (text string, isJSON bool) {
	const replacement = "\uFFFD"
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil ||
		strings.Count(s, replacement) > bytes.Count(raw, []byte(replacement)) {
		return string(raw), true
	}
	return s, false
}

// Bounds of what is laid out over several lines: beyond them white space would
// outgrow the value.
const (
	indentFrom  = 60
	indentTo    = 256 << 10
	indentDepth = 8
)

// indent lays out an object or array that is too long for one line. It adds
// white space between the tokens and nothing else.
func indent(text string) string {
	if len(text) < indentFrom || len(text) > indentTo || depth(text) > indentDepth {
		return text
	}
	var b bytes.Buffer
	if json.Indent(&b, []byte(text), "", "  ") != nil {
		return text
	}
	return b.String()
}

// depth is how deep the brackets of valid JSON nest. Brackets inside strings
// count too: too deep only means not laid out.
func depth(text string) int {
	deepest, now := 0, 0
	for _, c := range []byte(text) {
		switch c {
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now--
		}
	}
	return deepest
}
