package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// inForce is what a binary has to say which mutant is in force: this and a number of four digits. It is patched.
const inForce = "the mutant in force is number "

// selector is the file that each package gets in which a function has changed copies.
const selector = `package %s

var mutantInForce = "` + inForce + `0000"

func isMutant(number string) bool { return mutantInForce[len(mutantInForce)-4:] == number }
`

// copyFile is the file in which the compiler is told that a changed copy stands: so what it says of it names the mutant.
const copyFile = "mutant-%04d"

// errApart says that a mutant does not fit into a function's copy, and needs a build of its own.
var errApart = fmt.Errorf("it changes more than the body of one function")

// copied is a function's changed copy, and the branch to it.
type copied struct {
	branch string
	at     int // offset in the original text, behind the brace that begins the body
	text   string
}

// copyOf makes the changed copy of the one function whose body a mutant changes.
func copyOf(original, changed string, number int) (copied, error) {
	was, err := functions(original)
	if err != nil {
		return copied{}, err
	}
	is, err := functions(changed)
	if err != nil {
		return copied{}, err
	}
	if len(was) != len(is) {
		return copied{}, errApart
	}
	differs := -1
	rest := original
	for i := range was {
		if was[i].head != is[i].head {
			return copied{}, errApart
		}
		if was[i].body != is[i].body {
			if differs >= 0 {
				return copied{}, errApart
			}
			differs = i
			rest = original[:was[i].brace] + is[i].body + original[was[i].brace+len(was[i].body):]
		}
	}
	if differs < 0 || rest != changed {
		return copied{}, errApart
	}
	return was[differs].copied(is[differs].body, number)
}

// function is one function of a file.
type function struct {
	decl  *ast.FuncDecl
	head  string // up to the body
	body  string // with its braces
	brace int    // offset of the first
	name  int    // offset of the name in head
}

// functions are those of a file that have a body.
func functions(text string) ([]function, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	offset := func(p token.Pos) int { return set.Position(p).Offset }
	var all []function
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			from, brace := offset(f.Pos()), offset(f.Body.Pos())
			all = append(all, function{
				decl: f, head: text[from:brace], body: text[brace:offset(f.Body.End())], brace: brace, name: offset(f.Name.Pos()) - from,
			})
		}
	}
	return all, nil
}

// copied is the function with another body and name, and the call of it with what the function was called with.
func (f function) copied(body string, number int) (copied, error) {
	name := fmt.Sprintf("%sMutant%04d", f.decl.Name.Name, number)
	call := name
	if f.decl.Type.TypeParams != nil || f.decl.Name.Name == "init" {
		return copied{}, errApart
	}
	if recv := f.decl.Recv; recv != nil {
		if len(recv.List[0].Names) == 0 || !isName(recv.List[0].Type) {
			return copied{}, errApart
		}
		call = recv.List[0].Names[0].Name + "." + name
	}
	var args []string
	for _, p := range f.decl.Type.Params.List {
		for _, n := range p.Names {
			arg := n.Name
			if _, variadic := p.Type.(*ast.Ellipsis); variadic {
				arg += "..."
			}
			args = append(args, arg)
		}
		if len(p.Names) == 0 {
			return copied{}, errApart
		}
	}
	if slices.Contains(args, "_") || strings.HasPrefix(call, "_") {
		return copied{}, errApart
	}
	call += "(" + strings.Join(args, ", ") + ")"
	if f.decl.Type.Results == nil {
		call += "; return"
	} else {
		call = "return " + call
	}
	return copied{
		branch: fmt.Sprintf(" if isMutant(%q) { %s }; ", fmt.Sprintf("%04d", number), call),
		at:     f.brace + 1,
		text:   fmt.Sprintf("\n\n//line "+copyFile+":1\n", number) + f.head[:f.name] + name + f.head[f.name+len(f.decl.Name.Name):] + body,
	}, nil
}

// isName tells a receiver of a plain type from one with type parameters.
func isName(e ast.Expr) bool {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	_, ok := e.(*ast.Ident)
	return ok
}

// join gives the text of a file with all copies and the branches to them.
func join(original string, copies []copied) string {
	sorted := slices.SortedStableFunc(slices.Values(copies), func(a, b copied) int { return a.at - b.at })
	var out bytes.Buffer
	from := 0
	for _, c := range sorted {
		out.WriteString(original[from:c.at])
		out.WriteString(c.branch)
		from = c.at
	}
	out.WriteString(original[from:])
	for _, c := range sorted {
		out.WriteString(c.text)
	}
	out.WriteString("\n")
	return out.String()
}

// patch gives a binary in which another mutant is in force.
func patch(binary []byte, number int) ([]byte, error) {
	none := fmt.Appendf(nil, "%s%04d", inForce, 0)
	if !bytes.Contains(binary, none) {
		return nil, fmt.Errorf("patch: the binary has no place for the mutant in force")
	}
	return bytes.ReplaceAll(binary, none, fmt.Appendf(nil, "%s%04d", inForce, number)), nil
}
