import Cluster
import Wire

// The nodes of a cluster in responses (`docs/rest.md`).

extension NodeList {
    /// Writes the members of the list.
    func write(to writer: inout JSONWriter) {
        writer.member("asked", asked.nodeName)
        if let age { writer.member("seenMsAgo", age.wholeMilliseconds) }
        writer.list("nodes", nodes) { $1.write(to: &$0) }
    }

    /// The list as the body of a response.
    var response: GateResponse { .json { write(to: &$0) } }
}

extension RelayStates {
    /// Writes the member `relays` of a node.
    fileprivate func write(to writer: inout JSONWriter) {
        writer.name("relays")
        writer.beginObject()
        writer.member("connected", connected)
        writer.member("connecting", connecting)
        writer.member("thinned", thinned)
        if let fault { writer.member("fault", fault.rawValue) }
        writer.endObject()
    }
}

extension NodeList.Node {
    /// Writes the members of a node.
    func write(to writer: inout JSONWriter) {
        writer.member("node", tag.nodeName)
        writer.member("life", tag.life)
        writer.member("state", condition.rawValue)
        if let requested { writer.member("requested", requested.rawValue) }
        if let lease { writer.member("leaseMs", lease.wholeMilliseconds) }
        if let heir { writer.member("fencedBy", heir.nodeName) }
        relays?.write(to: &writer)
        guard let record else { return }
        if record.isOutOfService == true { writer.member("outOfService", true) }
        if let left = record.disconnectsInMs { writer.member("disconnectsInMs", left) }
        writer.member("version", record.version)
        writer.member("sockets", record.load.sockets)
        writer.member("load", rate: record.load.share)
        if let places = record.places { writer.member("places", places) }
        if let checked = record.checkedMsAgo { writer.member("checkedMsAgo", checked) }
        writer.member("url", record.url)
        writer.member("address", record.socketAddress)
    }

    /// The node as the body of a response.
    var response: GateResponse { .json { write(to: &$0) } }
}
