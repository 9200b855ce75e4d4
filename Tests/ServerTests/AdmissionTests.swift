import Testing
import Wire

@testable import Server

/// What outsiders see of admission: which error comes first, and what it says.
@Suite("Admission of an address") struct AdmissionTests {
    @Test("each door makes its checks in its order")
    func order() {
        #expect(Gateway.Door.upgrade.checks == [.room, .origin, .draining, .ban])
        #expect(Gateway.Door.hello.checks == [.rate])
        #expect(Gateway.Door.welcome.checks == [.draining, .ban])
        #expect(Gateway.Door.handshake.checks == [.draining, .ban, .rate, .room])
        #expect(Gateway.Door.resource.checks == [.draining, .ban, .rate, .room])
        #expect(Gateway.Door.export.checks == [.rate])
        #expect(Gateway.Door.drawing.checks == [.rate])
    }

    @Test("what a client is told at each door")
    func sentences() {
        let wait = Duration.seconds(3)
        #expect(
            told(.upgrade) { $0.tooManyConnections } == "Too many connections from your network; close some tabs. 10")
        #expect(told(.handshake) { $0.tooManyConnections } == "Too many connections; close some tabs.")
        #expect(told(.resource) { $0.tooManyConnections } == "Too many connections from your network. 10")
        #expect(told(.upgrade) { $0.draining } == "The server is restarting.")
        #expect(told(.handshake) { $0.draining } == "The server is restarting; try again.")
        #expect(told(.resource) { $0.draining } == "The server is restarting; try again. 5")
        for door in [Gateway.Door.hello, .handshake] {
            let error = told(door) { $0.tooOften(retryAfter: wait) }
            #expect(error == "Too many visits from your network; wait a little. 3")
        }
        for door in [Gateway.Door.resource, .export, .drawing] {
            let error = told(door) { $0.tooOften(retryAfter: wait) }
            #expect(error == "Too many requests from your network; wait a little. 3")
        }
        for door in Gateway.Door.allCases {
            let errors = [door.tooManyConnections, door.draining, door.tooOften(retryAfter: wait)]
            #expect(errors.map(\.code.rawValue) == ["too_many_connections", "draining", "rate_limited"])
            #expect(errors.map(\.retryable) == [true, true, true])
        }
    }

    /// The sentence, and the seconds to wait if the error names them.
    private func told(_ door: Gateway.Door, _ error: (Gateway.Door) -> WireError) -> String {
        let error = error(door)
        return error.retryAfter.map { "\(error.message) \($0.components.seconds)" } ?? error.message
    }
}
