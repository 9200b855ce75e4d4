import Signaling
import TestSupport
import Testing
import Wire

/// Chat, hands and reactions.
@Suite struct RoomTalkTests: InStandUp {
    let room: StandUp

    init() throws { room = try StandUp() }

    @Test func everyoneHearsWhatIsSaid() throws {
        #expect(bob.write("Hello everyone")?.type == "ok")
        let line = RoomLine(connection: bob.connection, displayName: "Bob", text: "Hello everyone", at: stage.now)
        for guest in [ada, bob, eve] { #expect(guest.takeRooms() == [.said(line)]) }
    }

    @Test func whoJoinsLaterGetsTheLastMessages() throws {
        bob.write("one")
        ada.write("two")
        bob.leaveRoom()
        let joined = try #require(stage.arrive().open()?.room?.joined)
        #expect(joined.chat.map(\.text) == ["one", "two"])
        #expect(joined.chat.map(\.displayName) == ["Bob", "Ada"])
    }

    @Test func theHistoryIsLimitedInLinesAndBytes() throws {
        for number in 0..<150 {
            ada.write("\(number)")
            stage.pass(.seconds(1))
        }
        let lines = try #require(stage.arrive().open()?.room?.joined).chat
        #expect(lines.map(\.text) == (50..<150).map { "\($0)" })
        for _ in 0..<10 {
            ada.write(String(repeating: "x", count: 4096))
            stage.pass(.seconds(1))
        }
        let long = try #require(stage.arrive().open()?.room?.joined).chat
        #expect(long.count == 4)
    }

    /// JSON writes a control character in six bytes.
    @Test func oneMessageDoesNotPushOutAllOthers() throws {
        ada.write("hello")
        #expect(bob.write(String(repeating: "\u{1}", count: 4096))?.type == "ok")
        let lines = try #require(stage.arrive().open()?.room?.joined).chat
        #expect(lines.map(\.text.count) == [5, 4096])
    }

    @Test func aMessageThatIsLargerThanTheWholeHistoryIsRefused() throws {
        let room = try StandUp(Stage { ($0.routesMedia, $0.roomChatBytes) = (true, 1024) })
        room.ada.write("hello")
        #expect(room.bob.write(String(repeating: "x", count: 1025))?.errorCode == .messageTooLarge)
        #expect(room.bob.write(String(repeating: "x", count: 1019))?.type == "ok")
        let lines = try #require(room.stage.arrive().open()?.room?.joined).chat
        #expect(lines.map(\.text.count) == [5, 1019])
    }

    @Test func comingBackOrUsingAnotherDeviceDoesNotRefillABudget() {
        while bob.write("x")?.type == "ok" {}
        while bob.react("👋")?.type == "ok" {}
        bob.leaveRoom()
        bob.open(as: "Bob")
        #expect(bob.write("x")?.errorCode == .rateLimited)
        #expect(bob.react("👋")?.errorCode == .rateLimited)
        #expect(bob.raise()?.errorCode == .rateLimited, "it is the same budget")
        let device = stage.arrive(bob.identity, address: bob.address)
        device.open(as: "Bob")
        #expect(device.write("x")?.errorCode == .rateLimited)
        #expect(eve.write("x")?.type == "ok")
        stage.pass(.seconds(1))
        #expect(bob.write("x")?.type == "ok")
    }

    @Test func guestsWhoWriteMuchDoNotKeepAHostFromRemovingThem() throws {
        let room = try StandUp(
            Stage { ($0.routesMedia, $0.sessionTraffic) = (true, .init(perSecond: 1, burst: 3000)) })
        while room.bob.write(String(repeating: "x", count: 500))?.type == "ok" {}
        #expect(room.ada.write("stop")?.errorCode == .rateLimited, "the room has no more to spend")
        #expect(room.ada.remove(room.bob)?.type == "ok")
    }

    @Test func aRaisedHandIsShownWithItsTime() throws {
        #expect(bob.raise()?.type == "ok")
        #expect(ada.takeRooms().compactMap(\.person).map(\.handAt) == [stage.now])
        #expect(bob.raise()?.type == "ok")
        #expect(ada.takeRooms() == [], "it is raised already")
        let people = try #require(stage.arrive().open()?.room?.joined).people
        #expect(people.first { $0.connection == bob.connection }?.handAt == stage.now)
        ada.take()
        #expect(bob.raise(false)?.type == "ok")
        #expect(ada.takeRooms().compactMap(\.person).map(\.handAt) == [nil])
    }

    @Test func reactionsReachEveryone() {
        #expect(bob.react("👏")?.type == "ok")
        for guest in [ada, bob, eve] {
            #expect(guest.takeRooms() == [.reacted(.init(connection: bob.connection, reaction: "👏"))])
        }
    }

    @Test func talkAndGesturesHaveBudgetsPerPerson() {
        for what in [{ bob.write("x") }, { bob.react("👏") }] as [() -> ServerMessage?] {
            stage.pass(.seconds(60))
            let answers = (0..<12).map { _ in what() }
            #expect(answers.map { $0?.type } == Array(repeating: "ok", count: 10) + ["error", "error"])
            #expect(answers.last??.errorCode == .rateLimited)
            #expect(ada.write("not limited")?.type == "ok")
            stage.pass(.seconds(1))
            #expect(what()?.type == "ok")
        }
    }
}
