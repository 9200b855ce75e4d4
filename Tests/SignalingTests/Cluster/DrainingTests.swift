import Cluster
import TestSupport
import Testing
import Wire

@testable import Signaling

/// Clients that connect to a node that an operator takes out of service.
@Suite struct DrainingTests {
    private struct House: SpanningRooms {
        let world = ClusterWorld(nodes: 3) { $0.routesMedia = true }

        func drain(to condition: NodeCondition = .draining) { world.drain(world.nodes[0], to: condition) }

        /// A client that connects to node 1.
        ///
        /// - Parameter name: the node that it asked for, if any.
        func guest(at name: String?) -> Guest {
            let guest = Guest(on: world.nodes[0].stage, as: .random(using: &world.random))
            guest.at = name
            guest.arrive()
            world.pass(.milliseconds(100))
            return guest
        }

        /// Checks that the server has disconnected the client, so that it connects to any node.
        func checkIsSentAway(_ guest: Guest) {
            #expect(guest.closeCode == .serviceRestart)
            #expect(guest.refusals.map(\.code) == [.elsewhere] && guest.refusals.first?.at == nil)
            #expect(guest.refusals.first?.retryable == true)
        }
    }

    private let house = House()

    // MARK: What continues on the node

    @Test func aClientJoinsTheSessionOfAnApplicationThere() {
        let session = house.world.nodes[0].stage.room()
        let first = house.join(session, at: 1)
        house.drain()
        let second = house.join(session, at: 2)
        #expect(second.node?.name == "n1" && second.redirects == 1)
        house.world.pass(.seconds(60))
        #expect(first.isConnected && second.isConnected && second.redirects == 1)
        #expect(house.members(of: session) == [2, 0, 0])
        house.judge()
    }

    @Test func aPersonWhoReloadsThePageComesBackToTheirRoom() {
        let (host, guest) = (house.enter(at: 1), house.enter(at: 1))
        house.drain()
        guest.leave()
        let again = house.enter(at: 2)
        #expect(again.isInRoom && again.node?.name == "n1" && again.redirects == 1)
        house.world.pass(.seconds(60))
        #expect(host.isInRoom && again.isInRoom && house.roomCounts == [1, 0, 0])
        house.judge()
    }

    /// Other nodes redirect clients to this one as long as its life lasts.
    @Test func aClientJoinsTheSessionOfARoomThatHasEnded() throws {
        let host = house.enter(at: 1)
        let session = try house.admission(of: host).session
        host.leave()
        house.world.pass(.seconds(90))
        house.drain()
        let client = house.join(session, at: 3)
        #expect(client.node?.name == "n1" && house.members(of: session) == [1, 0, 0])
        house.judge()
    }

    @Test func aSessionThatHasEndedBeginsOnAnotherNode() {
        let session = house.world.nodes[0].stage.room()
        let first = house.join(session, at: 1)
        house.drain()
        first.leave()
        house.world.pass(.seconds(1))
        let second = house.join(session, at: 2)
        #expect(second.node?.name == "n2" && house.members(of: session) == [0, 1, 0])
        house.judge()
    }

    @Test func aDeviceStaysAsLongAsAnotherDeviceOfItsPersonIsInARoomThere() {
        let host = house.enter(at: 1)
        house.drain()
        let device = house.world.arrive(host.identity, at: 2)
        house.world.pass(.seconds(60))
        #expect(device.isConnected && device.node?.name == "n1" && device.redirects == 1 && host.isInRoom)
        host.leave()
        house.world.pass(.seconds(10))
        #expect(device.isConnected && device.node?.name != "n1" && device.redirects == 1)
        house.judge()
    }

    @Test func aCallThatRingsCanBeAccepted() throws {
        let (ada, bo) = (house.world.arrive(at: 1), house.world.arrive(at: 1))
        for client in [ada, bo] {
            house.world.pass(.milliseconds(50))
            client.want(.request(.presence(.appear(Appearance(name: "Ada")))))
        }
        house.world.pass(.milliseconds(50))
        let person = house.world.nodes[0].stage.project.personID(of: ada.identity)
        bo.want(.request(.call(.start(.init(person: person, video: true)))))
        house.world.pass(.milliseconds(100))
        let call = try #require(house.world.shelf.archive.openCalls.keys.first)
        let connections = [ada, bo].map { $0.guest?.connection }
        house.drain()
        house.world.pass(.seconds(10))
        ada.want(.request(.call(.accept(.init(call: call, video: true)))))
        house.world.pass(.seconds(10))
        #expect([ada, bo].map { $0.guest?.connection } == connections && ada.failures.isEmpty)
        for client in [ada, bo] {
            #expect(client.news.contains { if case .call(.accepted) = $0 { true } else { false } }, "\(client.news)")
        }
        house.judge()
    }

    // MARK: Clients without a reason to be there

    @Test func aClientThatDoesNotAskForTheNodeIsSentAwayAtOnce() {
        house.drain()
        house.checkIsSentAway(house.guest(at: nil))
        house.checkIsSentAway(house.guest(at: "n2"))
        #expect(house.world.registry.places.isEmpty)
    }

    @Test func aClientThatAsksForTheNodeAndJoinsNothingIsSentAwayAfterFiveSeconds() {
        house.drain()
        let guest = house.guest(at: "n1")
        house.world.pass(.seconds(4))
        #expect(guest.socket != nil && guest.refusals.isEmpty)
        house.world.pass(.seconds(3))
        house.checkIsSentAway(guest)
        #expect(house.world.registry.places.isEmpty && house.world.nodes[0].stage.hub.personCount == 0)
    }

    @Test func afterTheGracePeriodNobodyIsAdmitted() {
        house.drain()
        house.drain(to: .drained)
        house.checkIsSentAway(house.guest(at: "n1"))
        #expect(house.world.registry.places.isEmpty)
    }

    @Test func afterTheGracePeriodARoomOpensOnAnotherNodeAtOnce() {
        let people = [house.enter(at: 1), house.enter(at: 1)]
        house.drain()
        house.drain(to: .drained)
        #expect(people.allSatisfy(\.isInRoom) && house.roomCounts == [1, 0, 0])
        for socket in people.compactMap({ $0.guest?.socket }) {
            house.world.nodes[0].stage.handle(.expel(socket, .serverStops, .serviceRestart))
        }
        house.world.pass(.seconds(10))
        #expect(people.allSatisfy { $0.isInRoom && $0.node?.name != "n1" })
        #expect(house.roomCounts.sorted() == [0, 0, 1] && house.roomCounts[0] == 0)
        house.judge()
    }

    @Test func aNodeThatIsTakenBackAdmitsEveryone() {
        house.drain(to: .drained)
        house.drain(to: .serving)
        let guest = house.guest(at: nil)
        house.world.pass(.seconds(60))
        #expect(guest.socket != nil && guest.refusals.isEmpty)
    }
}
