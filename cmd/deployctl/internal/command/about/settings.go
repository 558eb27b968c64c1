package about

import (
	"fmt"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

// SettingsCommand returns deployctl settings.
func SettingsCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "settings", Usage: "print every setting and where its value comes from",
		Description: "Precedence: flag, environment variable, configuration file (YAML; a dot in a name is a level), " +
			"default.\n\n" + settingsDoc(),
		Flags: append([]cli.Flag{console.SettingsFlag, console.JSONFlag}, console.SettingFlags(settings.ForClient,
			settings.ForServe,
			settings.ForService, settings.ForEach)...),
		Action: func(c *cli.Context) error {
			session, err := console.NewSession(s, c)
			if err != nil {
				return err
			}
			return printSettings(session)
		},
	}
}

// settingsDoc lists the settings by their keys in the file.
func settingsDoc() string {
	var b strings.Builder
	for _, d := range settings.Table {
		fmt.Fprintf(&b, "- %s (%s): %s\n", d.Key, d.Key.Variable(), strings.ReplaceAll(d.Usage, "`", ""))
	}
	return b.String()
}

// setting is one setting in --json.
type setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"`
}

func printSettings(s *console.Session) error {
	list := []setting{}
	rows := [][]string{{"SETTING", "VALUE", "SOURCE"}}
	for _, d := range settings.Table {
		value, source := s.Settings.Get(d.Key), s.Settings.Source(d.Key)
		if d.Secret && value != "" {
			value = "[secret]"
		}
		list = append(list, setting{string(d.Key), value, source})
		if source == "" {
			source = "not set"
		}
		rows = append(rows, []string{string(d.Key), value, source})
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(list)
	}
	if err := s.SayTable(rows); err != nil {
		return err
	}
	s.Say("\nconfiguration file: %s", s.Settings.File())
	return nil
}
