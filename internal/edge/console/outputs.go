package console

import (
	"encoding/json"
	"strings"

	"github.com/deployctl/deployctl/internal/values/safetext"
)

// outputsPage shows the outputs of a stack.
func outputsPage(c *call) (answer, error) {
	s, err := c.readState()
	if err != nil {
		return answer{}, err
	}
	data := struct {
		Version int
		Outputs []value
		More    int
	}{Version: s.Version}
	if i := s.root(); i >= 0 {
		all, err := s.values(c, i)
		if err != nil {
			return answer{}, err
		}
		data.Outputs, data.More = shown(all.Outputs)
	}
	p := c.stackPageOf("Outputs")
	p.Data = data
	return c.page("outputs", p)
}

// indented writes a value as JSON, with a line for each of its parts.
func indented(v any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // the template does
	encoder.SetIndent("", "  ")
	if encoder.Encode(v) != nil {
		return "(cannot be shown)"
	}
	return safetext.Text(strings.TrimSuffix(text.String(), "\n"))
}
