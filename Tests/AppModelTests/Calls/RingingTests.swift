import Foundation
import Testing

@testable import AppModel
@testable import Confab

/// Where the system's call screen must not be used, the app itself rings.
@Suite @MainActor struct RingingTests {
    private let device = FakeDevice()
    private let ada = CallScript.ada
    private let bob = CallScript.bob

    private func model(usesSystem: Bool = false, isTalking: Bool = false) -> CallsModel {
        device.calls.isAllowed = usesSystem
        let model = CallsModel(platform: device.platform, isTalking: { isTalking }) { _ in }
        model.handle(.online(isNew: true))
        return model
    }

    @Test func itRingsUntilTheCallIsAnswered() {
        let model = model()
        model.handle(CallScript.incoming(CallScript.first, bob))
        #expect(device.ringing.played == [.incoming])
        device.clock.pass(6)
        #expect(device.ringing.played == [.incoming, .incoming, .incoming] && device.ringing.stops == 0)
        model.accept()
        #expect(device.ringing.stops == 1)
        device.clock.pass(60)
        #expect(device.ringing.played.count == 3)
    }

    @Test(arguments: [CallEnding.Outcome.cancelled, .missed, .answeredElsewhere]) func itStopsWhenTheCallIsOver(
        reason: CallEnding.Outcome
    ) {
        let model = model()
        model.handle(CallScript.incoming(CallScript.first, bob))
        model.handle(CallScript.ended(reason, CallScript.first))
        device.clock.pass(60)
        #expect(device.ringing.played == [.incoming] && device.ringing.stops == 1)
    }

    @Test func itDoesNotRingTwiceForOneCall() {
        let model = model()
        model.handle(CallScript.incoming(CallScript.first, bob))
        // Its caller has another name now.
        model.handle(CallScript.incoming(CallScript.first, ada))
        #expect(device.ringing.played == [.incoming])
        device.clock.pass(3)
        #expect(device.ringing.played.count == 2)
    }

    @Test func aSecondCallRingsQuietlyUntilItIsTheOnlyOne() {
        let model = model()
        model.handle(CallScript.incoming(CallScript.first, bob))
        model.accept()
        model.handle(CallScript.accepted(CallScript.first, bob))
        model.handle(CallScript.incoming(CallScript.second, ada))
        #expect(device.ringing.played == [.incoming, .waiting])
        device.clock.pass(4)
        #expect(device.ringing.played.last == .waiting && device.ringing.played.count == 3)
        model.handle(CallScript.ended(.hungUp, CallScript.first))
        device.clock.pass(4)
        #expect(device.ringing.played.last == .incoming && device.ringing.played.count == 4)
    }

    @Test func twoCallsThatRingEndOneByOne() {
        let model = model()
        model.handle(CallScript.incoming(CallScript.first, bob))
        model.handle(CallScript.incoming(CallScript.second, ada))
        model.handle(CallScript.ended(.cancelled, CallScript.first))
        #expect(device.ringing.stops == 0, "the other one rings")
        model.handle(CallScript.ended(.cancelled, CallScript.second))
        #expect(device.ringing.stops == 1)
    }

    @Test func aCallDuringAChatOrARoomRingsQuietly() {
        let model = model(isTalking: true)
        model.handle(CallScript.incoming(CallScript.first, bob))
        #expect(device.ringing.played == [.waiting])
    }

    @Test func twoCallsThatRingDoNotFillTheScreen() {
        let model = model()
        model.handle(CallScript.incoming(CallScript.first, bob))
        model.handle(CallScript.incoming(CallScript.second, ada))
        #expect(!model.isInCall && model.incoming?.person == ada)
        #expect(device.ringing.played == [.incoming])
        model.decline()
        #expect(!model.isInCall && model.incoming?.person == bob, "the first one can still be answered")
        model.accept()
        #expect(model.isInCall)
    }

    @Test func theSystemsCallScreenRingsByItself() {
        let model = model(usesSystem: true)
        model.handle(CallScript.incoming(CallScript.first, bob))
        device.clock.pass(60)
        #expect(device.ringing.played.isEmpty)
    }

    @Test(arguments: RingTone.allCases) func aToneIsAWAVFile(tone: RingTone) {
        let file = [UInt8](tone.wav)
        func number(_ at: Int, _ count: Int) -> Int { file[at..<at + count].reversed().reduce(0) { $0 << 8 | Int($1) } }
        #expect(file[0..<4].elementsEqual("RIFF".utf8) && file[8..<16].elementsEqual("WAVEfmt ".utf8))
        #expect(number(4, 4) == file.count - 8 && number(40, 4) == file.count - 44)
        // Linear PCM, one channel, 16 bits.
        #expect(number(20, 2) == 1 && number(22, 2) == 1 && number(34, 2) == 16)
        #expect(number(24, 4) == RingTone.sampleRate && number(28, 4) == RingTone.sampleRate * 2)
        let samples = stride(from: 44, to: file.count, by: 2).map { abs(Int(Int16(truncatingIfNeeded: number($0, 2)))) }
        #expect(samples.first == 0 && samples.last ?? .max < 1000, "it does not click")
        #expect((8_000...30_000).contains(samples.max() ?? 0), "it is heard, and not distorted")
        #expect(
            .milliseconds(samples.count * 1000 / RingTone.sampleRate) < tone.interval,
            "it ends before it is played again")
    }
}
