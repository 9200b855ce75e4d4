import RTC
import TestSupport
import Testing

@testable import SFU

@Suite("Simulcast layers")
struct LayerTests {
    @Test("each subscriber gets the layer of its preferred size")
    func sizes() throws {
        let call = try SimulatedLayers(watchers: 4)
        call.prefer(0, 1280, 720)
        call.prefer(1, 640, 360)
        call.prefer(2, 100)
        call.watchers[3].subscribe(to: call.publisher)
        call.room.run(3000)
        for (index, label) in [10, 11, 12, 10].enumerated() {
            let slot = try call.slot(index)
            // A few layers may be forwarded at first, because sizes are unknown until the first keyframe.
            #expect(slot.labels.last == UInt32(label) && slot.labels.count <= 3, "watcher \(index): \(slot.labels)")
            #expect(slot.faults() == [])
        }
    }

    @Test("a new preference switches the layer at a keyframe, without a gap", arguments: 1...4 as ClosedRange<UInt64>)
    func switching(seed: UInt64) throws {
        let call = try SimulatedLayers(seed: seed)
        call.prefer(0, 320, 180)
        // Wait until the size of each layer is known from its first keyframe.
        call.room.run(1500)
        var expected = try call.slot().labels
        #expect(expected.last == 12)
        for (width, label) in [(1280, 10), (640, 11), (320, 12), (641, 10), (1, 12)] as [(Int, UInt32)] {
            call.prefer(0, width)
            call.room.run(700)
            expected.append(label)
        }
        let slot = try call.slot()
        #expect(slot.labels == expected && slot.faults() == [])
        // A frame takes 33 ms, and the requested keyframe is the next frame.
        #expect(slot.longestGap < 120, "\(slot.longestGap) ms")
    }

    @Test("a layer without subscribers causes no keyframe requests or NACKs, and its packets are not stored")
    func unwatched() throws {
        let call = try SimulatedLayers(weather: NetworkConditions(losses: 50, delay: 5...20))
        call.prefer(0, 320, 180)
        call.room.run(1000)
        let before = call.layers.map { ($0.keyframesAsked, $0.retransmissionsRequested) }
        call.room.run(4000)
        #expect(call.layers[0].keyframesAsked == before[0].0 && call.layers[0].retransmissionsRequested == before[0].1)
        #expect(call.layers[1].keyframesAsked == before[1].0 && call.layers[1].retransmissionsRequested == before[1].1)
        #expect(call.layers[2].retransmissionsRequested > before[2].1)
        let track = try call.track()
        #expect(track.feedTrack.feeds.map(\.isWatched) == [false, false, true])
        let forwarded = call.room.router.counters.packetsForwarded
        let received = call.room.router.counters.packetsIn
        #expect(forwarded < received / 2, "\(forwarded) of \(received)")
    }

    @Test("a subscriber whose layer stops gets another layer within a second, and the first one when it returns")
    func dying() throws {
        let call = try SimulatedLayers()
        call.prefer(0, 640, 360)
        call.room.run(2000)
        let stopped = call.room.network.now
        call.layers[1].isOn = false
        call.room.run(2000)
        let slot = try call.slot()
        #expect(slot.labels.last == 10, "\(slot.labels)")
        let next = try #require(slot.inOrder.first { $0.tag.label == 10 && $0.at > stopped })
        #expect(next.at - stopped < .milliseconds(700), "\((next.at - stopped).milliseconds) ms")
        call.layers[1].isOn = true
        call.room.run(1500)
        #expect(slot.labels.last == 11 && slot.faults() == [])
    }

    @Test("if all layers stop together, no layer is switched")
    func still() throws {
        let call = try SimulatedLayers()
        call.prefer(0, 640, 360)
        call.room.run(1500)
        let labels = try call.slot().labels
        for layer in call.layers { layer.isOn = false }
        call.room.run(5000)
        for layer in call.layers { layer.isOn = true }
        call.room.run(1000)
        #expect(try call.slot().labels == labels && call.slot().faults() == [])
    }

    @Test("while sizes are unknown, layers are selected by their order in the description")
    func order() throws {
        let call = try SimulatedLayers(watchers: 2, sizes: [nil, nil, nil])
        call.prefer(0, 320, 180)
        call.watchers[1].subscribe(to: call.publisher)
        call.room.run(2000)
        #expect(try call.slot(0).labels.last == 12 && call.slot(1).labels.last == 10)
    }

    @Test(
        "packets lost after a layer switch are retransmitted, those before it are not",
        arguments: 1...3 as ClosedRange<UInt64>)
    func losses(seed: UInt64) throws {
        let call = try SimulatedLayers(seed: seed, weather: NetworkConditions(losses: 30, delay: 5...20))
        call.prefer(0, 320)
        call.room.run(2000)
        for width in [1280, 320, 640, 1280, 640, 320] {
            call.prefer(0, width)
            call.room.run(1500)
        }
        for layer in call.layers { layer.isOn = false }
        call.room.run(1000)
        let slot = try call.slot()
        let inOrder = slot.inOrder
        for (one, next) in zip(inOrder, inOrder.dropFirst()) where next.number != one.number + 1 {
            let isOvertaken = inOrder.contains {
                $0.number > one.number && $0.tag.isKeyframe && $0.at - one.at < .milliseconds(400)
            }
            #expect(isOvertaken, "seed \(seed): a gap before \(next.number) of \(next.tag.label)")
        }
        #expect(slot.unreadable == 0)
    }

    @Test("the publisher is notified of additional needed layers at once, and of unneeded ones after two seconds")
    func announcing() throws {
        let call = try SimulatedLayers(watchers: 2)
        call.room.run(1000)
        #expect(call.wanted == [])
        call.room.run(2000)
        #expect(call.wanted == [[]])
        call.prefer(0, 320, 180)
        call.room.run(100)
        #expect(call.wanted.last == ["q"])
        let reported = call.wanted.count
        call.prefer(1, 1280, 720)
        call.room.run(100)
        #expect(call.wanted.last?.contains("f") ?? false)
        call.watchers[1].unsubscribe(from: call.publisher)
        call.room.run(1500)
        #expect(call.wanted.last?.contains("f") ?? false)
        call.room.run(1000)
        #expect(call.wanted.last == ["q"])
        call.watchers[0].unsubscribe(from: call.publisher)
        call.room.run(3000)
        #expect(call.wanted.last == [] && call.wanted.count <= reported + 4, "\(call.wanted)")
    }

    @Test("a layer that was turned off for lack of subscribers returns with the first subscriber")
    func switchedOff() throws {
        let call = try SimulatedLayers(watchers: 2)
        // Begin with only the largest layer, like the browser SDK.
        for layer in call.layers { layer.isOn = layer.rid == "f" }
        func obey() {
            guard let wanted = call.wanted.last else { return }
            for layer in call.layers {
                let isOn = wanted.isEmpty ? layer.rid == "q" : wanted.contains(layer.rid ?? "")
                if isOn, !layer.isOn { layer.askForKeyframe() }
                layer.isOn = isOn
            }
        }
        func run(_ seconds: Int) {
            for _ in 0..<seconds * 50 {
                call.room.run(20)
                obey()
            }
        }
        call.watchers[0].subscribe(to: call.publisher)
        run(3)
        #expect(try call.slot(0).labels == [10] && call.wanted == [["f"]])
        call.prefer(1, 320, 180)
        run(2)
        #expect(try call.slot(1).labels.last == 12 && call.wanted.last == ["f", "q"], "\(call.wanted)")
        call.watchers[0].unsubscribe(from: call.publisher)
        run(4)
        #expect(call.wanted.last == ["q"] && !call.layers[0].isOn && !call.layers[1].isOn)
        call.watchers[0].subscribe(to: call.publisher)
        let asked = call.room.network.now
        run(2)
        let slot = try call.slot(0)
        #expect(slot.labels.last == 10 && slot.faults() == [], "\(slot.labels)")
        let next = try #require(slot.inOrder.first { $0.at > asked })
        #expect(next.at - asked < .milliseconds(200), "\((next.at - asked).milliseconds) ms")
        #expect(call.wanted.count < 10, "\(call.wanted)")
    }

    @Test("a subscriber that prefers a lower frame rate gets the layer that has it")
    func slowLayer() throws {
        let call = try SimulatedLayers(watchers: 2)
        call.layers[1].frameInterval = .milliseconds(100)
        call.prefer(0, frameRate: 12)
        call.prefer(1, frameRate: 60)
        call.room.run(4000)
        #expect(try call.slot(0).labels.last == 11 && call.slot(1).labels.last == 10)
    }
}
