import Testing
import Wire

@testable import Confab

@Suite("A client that leaves")
struct LeavingTests {
    @Test(
        "a client that leaves while its connection is away is closed at once, and tells the server later",
        arguments: [true, false])
    func leavingWhileAway(usesToken: Bool) throws {
        var script = ClientScript(usesToken: usesToken)
        script.handle(.connect)
        if usesToken { script.handle(.token(.success("token"), for: try #require(script.socket))) }
        script.open()
        script.welcome()
        script.close()
        let effects = script.handle(.leave)
        #expect(effects.states == [.closed(nil)] && effects.news == ["ended by the application"])
        #expect(script.wait(ClientScript.longestBackoff).opened.count == 1)
        let hello = script.open()
        #expect(hello?.resume != nil && hello?.token == (usesToken ? "token" : nil))
        let last = script.welcome { $0.resumed = true }
        #expect(last.said == [.bye] && last.closed.count == 1 && last.states == [] && last.notices == [])
        #expect(script.machine.nextTimeout == nil && script.state == .closed(nil))
    }
}
