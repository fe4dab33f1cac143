// Package locks holds the tests of the Lockers of package coordination on real servers: that they keep the contract on
// etcd and on Redis as they do on what stands for them in their own tests, among many clients, and while members and
// servers are stopped, killed and started again.
package locks
