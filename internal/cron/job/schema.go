package job

import _ "embed"

// schemaJSON is written by hand. docs/schema/job.json is a copy.
//
//go:embed schema.json
var schemaJSON string

// Schema is the JSON Schema (draft 2020-12) of a job. What it refuses, Parse refuses; what it lets pass may still have a schedule that
// cannot be read, a zone that is not known, or values out of bounds where it would have to understand a unit.
func Schema() []byte { return []byte(schemaJSON) }
