// Package examples runs the programs in the folder examples as a newcomer does, and reads what they print. Each holds what
// happens against what has to by itself, and ends with 0 if that is so; the tests see to it that it says so in order.
//
// The one with a database runs on a SQLite, and on a PostgreSQL where that is installed.
package examples
