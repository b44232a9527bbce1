package main

import (
	"cmp"
	"fmt"
	"html"
	"image/color"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-hitl/fermata/test/show/terminal"
)

// palette is how the terminal's own sixteen colours look in a picture.
var palette = [16]struct{ name, dark, light string }{
	{"black", "#3b4048", "#1c1e22"},
	{"red", "#e06c75", "#b3261e"},
	{"green", "#98c379", "#2d7a2d"},
	{"yellow", "#e5c07b", "#8a6a00"},
	{"blue", "#61afef", "#1f5fbf"},
	{"magenta", "#c678dd", "#8e3ab0"},
	{"cyan", "#56b6c2", "#0b7285"},
	{"white", "#d7dae0", "#5c6370"},
	{"bright black", "#7f848e", "#5c6370"},
	{"bright red", "#ff7b86", "#c62828"},
	{"bright green", "#b5e890", "#2e7d32"},
	{"bright yellow", "#ffd68a", "#946f00"},
	{"bright blue", "#7cc4ff", "#1565c0"},
	{"bright magenta", "#e0a0f5", "#7b1fa2"},
	{"bright cyan", "#7fdbe6", "#00838f"},
	{"bright white", "#ffffff", "#1c1e22"},
}

// colourName is the terminal's name of a colour, or the colour itself.
func colourName(c color.Color) string {
	if basic, ok := c.(ansi.BasicColor); ok {
		return palette[basic].name
	}
	return css(c, false)
}

// coloursOf are the names of the colours that letters and their ground have.
func coloursOf(p terminal.Picture) []string {
	used := map[string]bool{}
	for _, row := range p {
		for _, c := range row {
			for _, col := range []color.Color{c.Style.Fg, c.Style.Bg} {
				if col != nil && strings.TrimSpace(c.Content) != "" {
					used[colourName(col)] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(used))
}

func css(c color.Color, light bool) string {
	if basic, ok := c.(ansi.BasicColor); ok {
		if light {
			return palette[basic].light
		}
		return palette[basic].dark
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}

// The measures of a cell in a picture, CSS pixels.
const cellWidth, cellHeight, edge = 9, 20, 14

// page draws a picture as HTML: each cell in its own place, so that no font
// can move another.
func page(p terminal.Picture, s size, light bool) string {
	ground, letters := "#1e2127", "#d7dae0"
	if light {
		ground, letters = "#ffffff", "#1c1e22"
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<!doctype html><meta charset="utf-8"><style>
html,body{margin:0;background:%s}
div{position:relative;width:%dpx;height:%dpx;margin:%dpx;font:15px/%dpx "DejaVu Sans Mono","Noto Sans Mono CJK SC",Symbola,monospace;color:%s}
i{position:absolute;white-space:pre;font-style:normal;height:%dpx;overflow:hidden;text-align:left}
</style><div>`, ground, s.columns*cellWidth, s.rows*cellHeight, edge, cellHeight, letters, cellHeight)
	for y, row := range p {
		x := 0
		for _, c := range row {
			w := max(c.Width, 1)
			if look := lookOf(c.Style, ground, letters, light); c.Content != " " || look != "" {
				fmt.Fprintf(&b, `<i style="left:%dpx;top:%dpx;width:%dpx%s">%s</i>`,
					x*cellWidth, y*cellHeight, w*cellWidth, look, html.EscapeString(c.Content))
			}
			x += w
		}
	}
	b.WriteString("</div>\n")
	return b.String()
}

// lookOf is the style of a cell, "" for the usual one.
func lookOf(s uv.Style, ground, letters string, light bool) string {
	fg, bg := "", ""
	if s.Fg != nil {
		fg = css(s.Fg, light)
	}
	if s.Bg != nil {
		bg = css(s.Bg, light)
	}
	if s.Attrs&uv.AttrReverse != 0 {
		fg, bg = cmp.Or(bg, ground), cmp.Or(fg, letters)
	}
	var look strings.Builder
	for _, rule := range []struct {
		on   bool
		text string
	}{
		{fg != "", ";color:" + fg},
		{bg != "", ";background:" + bg},
		{s.Attrs&uv.AttrBold != 0, ";font-weight:bold"},
		{s.Attrs&uv.AttrFaint != 0, ";opacity:.62"},
		{s.Attrs&uv.AttrItalic != 0, ";font-style:italic"},
		{s.Underline != 0, ";text-decoration:underline"},
	} {
		if rule.on {
			look.WriteString(rule.text)
		}
	}
	return look.String()
}

// writePNG has a browser without a window draw the picture.
func writePNG(file string, p terminal.Picture, s size, light bool) error {
	dir, err := os.MkdirTemp("", "fermata-png-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	source := filepath.Join(dir, "page.html")
	if err := os.WriteFile(source, []byte(page(p, s, light)), 0o600); err != nil {
		return err
	}
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	out, err := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
		"--user-data-dir="+filepath.Join(dir, "profile"), "--screenshot="+file,
		fmt.Sprintf("--window-size=%d,%d", s.columns*cellWidth+2*edge, s.rows*cellHeight+2*edge), "file://"+source).CombinedOutput()
	if err != nil {
		return fmt.Errorf("chromium: %w\n%s", err, out)
	}
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("chromium wrote no picture: %w\n%s", err, out)
	}
	return nil
}
