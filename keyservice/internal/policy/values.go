// The values that stand in a policy file: words, scopes, lists of globs.

package policy

import (
	"fmt"
	"strings"

	"github.com/cipherlane/cipherlane/keyservice/internal/names"
)

// oneOf reads one of a few words.
func oneOf[T ~string](target *T, words ...T) func(node) error {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = string(word)
	}
	return func(n node) error {
		var text string
		err := n.OneOf(&text, texts...)
		*target = T(text)
		return err
	}
}

func scopeInto(target *string) func(node) error {
	return func(n node) error {
		text, err := n.Text()
		if err != nil {
			return err
		}
		if err := names.CheckTopic(text); err != nil {
			return n.Errorf("invalid scope %q: %v", text, err)
		}
		*target = text
		return nil
	}
}

func globList(target *[]glob, check func(string) error, stop rune) func(node) error {
	return func(n node) error {
		_, err := n.List(func(item node) error {
			text, err := item.Text()
			if err != nil {
				return err
			}
			if err := check(text); err != nil {
				return item.Errorf("invalid name %q: %v", text, err)
			}
			*target = append(*target, newGlob(text, stop))
			return nil
		})
		return err
	}
}

// checkPrincipalPattern allows names, with * and ?, and ** only where it means something.
func checkPrincipalPattern(pattern string) error {
	if err := names.CheckPrincipal(pattern); err != nil {
		return err
	}
	prefix, cut := strings.CutSuffix(pattern, below)
	if strings.Contains(prefix, "**") || cut && !strings.HasPrefix(prefix, spiffe) {
		return fmt.Errorf("** stands at the end of a SPIFFE id only, as in spiffe://example.org/team/**")
	}
	return nil
}

// checkNamePattern allows what Kafka takes for groups and transactional ids: any text, but one that can be shown.
func checkNamePattern(pattern string) error { return names.CheckPrincipal(pattern) }

// checkTopicPattern allows the characters of topic names and the two wildcards.
func checkTopicPattern(pattern string) error {
	if len(pattern) > names.MaxTopic {
		return fmt.Errorf("it has %d bytes, more than %d", len(pattern), names.MaxTopic)
	}
	if pattern == "." || pattern == ".." {
		return fmt.Errorf("no topic has this name")
	}
	for i := range len(pattern) {
		if c := pattern[i]; c != '*' && c != '?' && !names.IsTopicByte(c) {
			return fmt.Errorf("character %d is not one of A-Z a-z 0-9 . _ - * ?", i+1)
		}
	}
	return nil
}
