import Server
import Testing
import Wire

@Suite("The table of nodes") struct NodeTableTests {
    private static func object(_ text: String) throws -> JSONObject {
        guard case .object(let object) = try JSONReader.parse(Array(text.utf8)) else { return JSONObject() }
        return object
    }

    private static func table(_ nodes: String, seenMsAgo: String = #","seenMsAgo":300"#) throws -> NodeTable {
        try NodeTable(object(#"{"asked":"n1"\#(seenMsAgo),"nodes":[\#(nodes)]}"#))
    }

    private static let first = """
        {"node":"n1","life":17,"state":"serving","leaseMs":2640,"version":"0.1.0","sockets":57,"load":0.12,"places":40,\
        "url":"https://chat.example.org","address":"192.0.2.11:8080"}
        """
    private static let second = """
        {"node":"n2","life":18,"state":"draining","leaseMs":2500,"disconnectsInMs":1741300,"version":"0.1.0","sockets":3,"load":0,\
        "url":"","address":"192.0.2.12:8080"}
        """
    private static let third = #"{"node":"n3","life":9,"state":"fenced","fencedBy":"n1"}"#

    @Test func `each node is a line, and columns are aligned`() throws {
        #expect(
            try Self.table([Self.first, Self.second, Self.third].joined(separator: ",")).lines == [
                "NODE  STATE                   VERSION  LIFE  LEASE  SOCKETS  LOAD  PLACES  ADDRESS          URL",
                "n1    serving                 0.1.0    17    2.6 s  57       12 %  40      192.0.2.11:8080  https://chat.example.org",
                "n2    draining (1742 s left)  0.1.0    18    2.5 s  3        0 %   -       192.0.2.12:8080  -",
                "n3    fenced by n1            -        9     -      -        -     -       -                -",
                "n1 was asked.",
            ])
    }

    @Test func `relays have a column if the node that was asked opens some`() throws {
        func relays(_ members: String) -> String { #","relays":{\#(members)}"# }
        let members = [
            "",
            relays(#""connected":2,"connecting":0,"thinned":0"#),
            relays(#""connected":1,"connecting":1,"thinned":0"#),
            relays(#""connected":0,"connecting":1,"thinned":0,"fault":"unreachable""#),
            relays(#""connected":1,"connecting":0,"thinned":1"#),
            relays(#""connected":0,"connecting":0,"thinned":0"#),
        ]
        func lines(_ members: [String]) throws -> [String] {
            let nodes = members.enumerated().map { index, members in
                #"{"node":"n\#(index + 1)","life":\#(index + 1),"state":"serving"\#(members)}"#
            }
            return try Self.table(nodes.joined(separator: ",")).lines
        }
        #expect(
            try lines(members) == [
                "NODE  STATE    VERSION  LIFE  LEASE  SOCKETS  LOAD  PLACES  RELAYS               ADDRESS  URL",
                "n1    serving  -        1     -      -        -     -       -                    -        -",
                "n2    serving  -        2     -      -        -     -       2/2                  -        -",
                "n3    serving  -        3     -      -        -     -       1/2                  -        -",
                "n4    serving  -        4     -      -        -     -       0/1 (unreachable)    -        -",
                "n5    serving  -        5     -      -        -     -       1/1 (loses packets)  -        -",
                "n6    serving  -        6     -      -        -     -       0/0                  -        -",
                "n1 was asked.",
            ])
        let strange = [
            relays(#""connected":9223372036854775807,"connecting":1"#), relays(#""connected":-1,"connecting":1"#),
            #","relays":1"#,
        ]
        for line in try lines(strange).dropFirst().dropLast() {
            #expect(line.hasSuffix("-     -       -       -        -"), "\(line)")
        }
    }

    @Test func `the last line says if the node that was asked knows too little`() throws {
        let late = try Self.table(Self.first, seenMsAgo: #","seenMsAgo":12400"#).lines.last
        #expect(late?.contains("n1 was asked, and has not reached PostgreSQL for 12 s") == true)
        #expect(late?.contains("--server URL") == true)
        let never = try Self.table(Self.first, seenMsAgo: "").lines.last
        #expect(never == "n1 was asked, and has not reached PostgreSQL yet.")
    }

    @Test func `a response that is no list is an error, and strange values do no harm`() throws {
        for text in ["{}", #"{"asked":"n1"}"#, #"{"asked":1,"nodes":[]}"#, #"{"asked":"n1","nodes":{}}"#] {
            #expect(throws: WireError.self) { try NodeTable(Self.object(text)) }
        }
        let strange = """
            {"node":7,"life":-1,"state":null,"leaseMs":-5,"load":1e300,"disconnectsInMs":9223372036854775807,"sockets":"many"},1
            """
        let lines = try Self.table(strange).lines
        #expect(lines.count == 3)
        #expect(lines[1].hasPrefix("7     -      -        -1    -      many"))
    }

    @Test func `a request is pending until the node has carried it out, and ended with its life`() throws {
        let request = try Self.object(#"{"node":"n2","life":18,"state":"serving","requested":"draining"}"#)
        func progress(_ node: String, isDraining: Bool = true) throws -> NodeTable.Progress {
            try Self.table("\(Self.first),\(node)").progress(of: request, isDraining: isDraining)
        }
        let requested = #"{"node":"n2","life":18,"state":"serving","requested":"draining","sockets":3}"#
        #expect(try progress(requested) == .pending)
        // Its record may be older than what the ledger says.
        let serving = #"{"node":"n2","life":18,"state":"serving","sockets":3}"#
        #expect(try progress(serving) == .pending)
        #expect(try progress(Self.second) == .done("n2  draining (1742 s left), 3 sockets"))
        #expect(try progress(Self.second, isDraining: false) == .pending)
        #expect(try progress(serving, isDraining: false) == .done("n2  serving, 3 sockets"))
        // A node that also waits for PostgreSQL, or has just started, has another state.
        let waiting = """
            {"node":"n2","life":18,"state":"waiting","outOfService":true,"disconnectsInMs":1741300,"sockets":3}
            """
        #expect(try progress(waiting) == .done("n2  waiting (1742 s left), 3 sockets"))
        #expect(try progress(waiting, isDraining: false) == .pending)
        let drained = #"{"node":"n2","life":18,"state":"waiting","outOfService":true,"sockets":3}"#
        #expect(try progress(drained) == .done("n2  waiting (out of service), 3 sockets"))
        #expect(try progress(drained, isDraining: false) == .pending)
        let back = #"{"node":"n2","life":18,"state":"waiting","sockets":3}"#
        #expect(try progress(back) == .pending)
        #expect(try progress(back, isDraining: false) == .done("n2  waiting, 3 sockets"))
        #expect(try progress(#"{"node":"n2","life":19,"state":"draining"}"#) == .ended)
        #expect(try progress(#"{"node":"n2","life":18,"state":"fenced"}"#) == .ended)
        #expect(try Self.table(Self.first).progress(of: request, isDraining: true) == .ended)
    }
}
