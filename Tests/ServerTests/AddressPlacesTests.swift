import RTC
import Signaling
import Testing
import Wire

@testable import Server

@Suite("Places that all addresses share") struct AddressPlacesTests {
    /// The places as a reference, because `#expect` cannot mutate values.
    private final class Places {
        private var places: AddressPlaces
        private(set) var refusal: AddressPlaces.Refusal?

        init(perAddress: Int, total: Int, modestShare: Int = 2) {
            places = AddressPlaces(perAddress: perAddress, total: total, modestShare: modestShare)
        }

        var count: Int { places.count }

        func take(_ address: IPAddress?) -> (place: AddressPlaces.Place, dropped: AddressPlaces.Place?)? {
            refusal = nil
            do throws(AddressPlaces.Refusal) {
                return try places.take(address)
            } catch {
                refusal = error
                return nil
            }
        }

        func release(_ place: AddressPlaces.Place) { places.release(place) }
    }

    private func v4(_ number: Int) -> IPAddress {
        IPAddress(bytes: [10, UInt8(number >> 16 & 255), UInt8(number >> 8 & 255), UInt8(number & 255)])!
    }

    /// An address in a /64 of a /56 of its own.
    private func v6(_ customer: UInt16, network: UInt8) -> IPAddress {
        IPAddress("2001:db8:\(String(customer, radix: 16)):\(String(network, radix: 16))::1")!
    }

    @Test("when no place is free, the address with the most loses its oldest to a newcomer")
    func newcomer() {
        let places = Places(perAddress: 5, total: 10)
        let first = (0..<5).compactMap { _ in places.take(v4(1))?.place }
        let second = (0..<4).compactMap { _ in places.take(v4(2))?.place }
        #expect(first.count == 5 && second.count == 4)
        #expect(places.take(v4(3))?.dropped == nil, "the last place is free")
        #expect(places.take(v4(4))?.dropped == first[0])
        #expect([first[1], second[0]].contains(places.take(v4(5))?.dropped), "both have four")
        #expect(places.count == 10)
        places.release(first[0])
        #expect(places.count == 10, "a place that was taken away is not given back twice")
    }

    @Test("when only addresses with few places are left, the newcomer is refused")
    func modest() {
        let places = Places(perAddress: 5, total: 6)
        for number in 1...3 { for _ in 0..<2 { #expect(places.take(v4(number)) != nil) } }
        #expect(places.take(v4(4)) == nil)
        #expect(places.refusal == .full)
    }

    @Test("an address does not get a place by losing another one of its own")
    func own() {
        let places = Places(perAddress: 5, total: 10)
        let dropped = (0..<5).compactMap { _ in places.take(v4(1))?.place }
        for number in 2...6 { #expect(places.take(v4(number)) != nil) }
        places.release(dropped[0])
        #expect(places.take(v4(7)) != nil)
        #expect(places.take(v4(1)) == nil)
        #expect(places.refusal == .full)
    }

    @Test("no address takes more than half of all places, whatever the setting says")
    func half() {
        let places = Places(perAddress: 100, total: 10)
        for _ in 0..<5 { #expect(places.take(v4(1)) != nil) }
        #expect(places.take(v4(1)) == nil)
        #expect(places.refusal == .address)
    }

    @Test("the networks of one customer, an IPv6 /56, share four times the limit of a /64")
    func wideBlock() {
        let places = Places(perAddress: 2, total: 100)
        var taken: [AddressPlaces.Place] = []
        for network in UInt8(0)..<255 {
            if let place = places.take(v6(1, network: network))?.place { taken.append(place) }
        }
        #expect(taken.count == 8)
        #expect(places.refusal == .address)
        #expect(places.take(v6(2, network: 0)) != nil)
        places.release(taken[0])
        #expect(places.take(v6(1, network: 9)) != nil && places.take(v6(1, network: 9)) == nil)
    }

    @Test("when no place is free, the /64s of one /56 count as one address")
    func wideShare() {
        let places = Places(perAddress: 2, total: 12, modestShare: 3)
        let taken = (UInt8(0)..<6).compactMap { places.take(v6(1, network: $0))?.place }
        for number in 1...3 { for _ in 0..<2 { #expect(places.take(v4(number)) != nil) } }
        #expect(places.take(v4(9))?.dropped == taken[0])
    }

    @Test("places without an address count only toward the total, and get one from the address with the most")
    func noAddress() {
        let places = Places(perAddress: 5, total: 6)
        let taken = (0..<3).compactMap { _ in places.take(v4(1))?.place }
        for _ in 0..<3 { #expect(places.take(nil) != nil) }
        let last = places.take(nil)
        #expect(last?.dropped == taken[0])
        #expect(places.take(nil) == nil, "two are few")
        if let last { places.release(last.place) }
        #expect(places.count == 5)
    }

    @Test("the descriptors of a process are never promised twice, and clients never get all of them")
    func descriptors() {
        for limit in [0, 1, 20, 64, 256, 1024, 4096, 65_536, 1 << 20] {
            let budget = DescriptorBudget(limit: limit, requests: 100)
            #expect(budget.reserve == min(DescriptorBudget.fixedReserve + 100, limit / 4), "\(limit)")
            #expect(budget.connections + budget.mediaConnections + budget.reserve == limit, "\(limit)")
            #expect(budget.mediaConnections <= StreamPlaces.maxConnections)
            let several = DescriptorBudget(limit: limit, requests: 100, loops: 3)
            #expect(several.reserve == min(budget.reserve + 2 * DescriptorBudget.loopReserve, limit / 4), "\(limit)")
            #expect(budget.transfers <= budget.connections / 2)
        }
    }

    @Test("descriptors are reserved for as many pushes and webhook requests as may run at once")
    func requestDescriptors() {
        var configuration = ConfabConfiguration()
        let before = DescriptorBudget.requests(configuration)
        #expect(before >= configuration.push.concurrency + configuration.webhooks.concurrency)
        configuration.webhooks.concurrency += 100
        #expect(DescriptorBudget.requests(configuration) == before + 100)
        configuration.push.concurrency += 10
        #expect(DescriptorBudget.requests(configuration) == before + 110)
    }
}

extension AddressPlacesTests {
    @Test("media over TCP counts the same blocks of addresses")
    func media() {
        func near(_ first: String, _ second: String) -> TransportAddress.Nearness {
            let (first, second) = (IPAddress(first)!, IPAddress(second)!)
            return first.transportAddress(port: 1).nearness(to: second.transportAddress(port: 2))
        }
        #expect(near("192.0.2.1", "192.0.2.1") == .block)
        #expect(near("192.0.2.1", "192.0.2.2") == .other)
        #expect(near("2001:db8::1", "2001:db8::2") == .block)
        #expect(near("2001:db8::1", "2001:db8:0:ff::1") == .wideBlock)
        #expect(near("2001:db8::1", "2001:db8:0:100::1") == .other)
        #expect(near("192.0.2.1", "::2") == .other)
    }
}

@Suite("Transfers of files") struct TransfersTests {
    /// A reference, because `#expect` cannot mutate values.
    private final class Stage {
        var transfers = Transfers(perAddress: 3, total: 100)
        func begin(_ size: Int, _ address: IPAddress = IPAddress("192.0.2.1")!) -> Transfers.Place? {
            try? transfers.begin(address, size: size, now: Timestamp(milliseconds: 0)).place
        }
        func end(_ place: Transfers.Place) { transfers.end(place) }
        func slow(at seconds: Int64) -> [Transfers.Place] {
            transfers.takeSlow(now: Timestamp(milliseconds: seconds * 1000))
        }
    }

    @Test("an address has only some at a time, and ended ones no longer count")
    func perAddress() throws {
        let stage = Stage()
        let first = try #require(stage.begin(1))
        #expect(stage.begin(1) != nil && stage.begin(1) != nil && stage.begin(1) == nil)
        stage.end(first)
        stage.end(first)
        #expect(stage.begin(1) != nil && stage.begin(1) == nil)
        #expect(stage.begin(1, IPAddress("192.0.2.2")!) != nil)
    }

    @Test("a transfer that does not reach the minimum rate ends, and a small one sooner than a large one")
    func slow() throws {
        let stage = Stage()
        let small = try #require(stage.begin(0))
        let large = try #require(stage.begin(100 * Transfers.minRate))
        let done = try #require(stage.begin(0))
        stage.end(done)
        #expect(stage.slow(at: 59) == [])
        #expect(stage.slow(at: 60) == [small])
        #expect(stage.slow(at: 159) == [])
        #expect(stage.slow(at: 160) == [large])
        #expect(stage.transfers.count == 0)
    }
}
