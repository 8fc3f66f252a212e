// Taking what is refused out of the lists of a request, and putting the refusals into the list of the answer, in the order of the request.

package access

// entry says how the entries of a list of a request, and of the list of its answer, belong together.
type entry[Q, A any, K comparable] struct {
	asked    func(*Q) K
	answered func(*A) K
	refuse   func(q *Q, code int16) A
}

// sifted is what was refused of a list.
type sifted[Q, A any, K comparable] struct {
	entry[Q, A, K]
	order []slot[A, K] // of the request; nil when nothing was refused
}

type slot[A any, K comparable] struct {
	key     K
	refusal *A // nil: the broker answers
}

// sift gives what is left of a list. code gives 0 for what stays. The list itself is not changed.
func sift[Q, A any, K comparable](list []Q, e entry[Q, A, K], code func(*Q) int16) (left []Q, s sifted[Q, A, K]) {
	s.entry, left = e, list
	for i := range list {
		refused := code(&list[i])
		if refused != 0 && s.order == nil {
			left = append(make([]Q, 0, len(list)), list[:i]...)
			s.order = make([]slot[A, K], i, len(list))
			for j := range i {
				s.order[j].key = e.asked(&list[j])
			}
		}
		switch {
		case refused != 0:
			refusal := e.refuse(&list[i], refused)
			s.order = append(s.order, slot[A, K]{e.asked(&list[i]), &refusal})
		case s.order != nil:
			s.order = append(s.order, slot[A, K]{e.asked(&list[i]), nil})
			left = append(left, list[i])
		}
	}
	return left, s
}

// any tells whether something was refused.
func (s sifted[Q, A, K]) any() bool { return s.order != nil }

// into puts the refusals between the broker's answers. Answers to what was not asked for come last.
func (s sifted[Q, A, K]) into(answers []A) []A {
	if !s.any() {
		return answers
	}
	found := make(map[K][]int, len(answers))
	for i := range answers {
		k := s.answered(&answers[i])
		found[k] = append(found[k], i)
	}
	merged, taken := make([]A, 0, len(answers)+len(s.order)), make([]bool, len(answers))
	for _, one := range s.order {
		if one.refusal != nil {
			merged = append(merged, *one.refusal)
			continue
		}
		if at := found[one.key]; len(at) > 0 {
			merged, taken[at[0]], found[one.key] = append(merged, answers[at[0]]), true, at[1:]
		}
	}
	for i := range answers {
		if !taken[i] {
			merged = append(merged, answers[i])
		}
	}
	return merged
}

// topicKey names a topic as a request or an answer does: by its name or by its id.
type topicKey struct {
	name string
	id   topicID
}

func self[T any](v *T) T { return *v }

// each makes the list of an answer from that of a request.
func each[Q, A any](list []Q, form func(*Q) A) []A {
	formed := make([]A, len(list))
	for i := range list {
		formed[i] = form(&list[i])
	}
	return formed
}

// keep gives what cuts a list to the entries that may stay, or nil when all may.
func keep[T any](list *[]T, may func(*T) bool) (cut func()) {
	kept := make([]T, 0, len(*list))
	for i := range *list {
		if may(&(*list)[i]) {
			kept = append(kept, (*list)[i])
		}
	}
	if len(kept) == len(*list) {
		return nil
	}
	return func() { *list = kept }
}

// both does two things, each of which may be nothing.
func both(a, b func()) func() {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func() { a(); b() }
}
