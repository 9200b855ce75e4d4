import Confab
import Foundation
import Testing

@testable import AppModel

/// What the system and WebRTC say, as the models hear it.
@Suite struct TranslationTests {
    @Test(arguments: [
        (nil, SystemReportResult.ok), (2, .known), (3, .filtered), (4, .filtered), (7, .filtered), (0, .refused),
        (1, .refused), (5, .refused), (6, .refused),
    ])
    func theSystemAnswersAReport(code: Int?, result: SystemReportResult) {
        #expect(SystemReportResult(errorCode: code) == result)
    }

    @Test func theSystemsCallScreenIsNotUsedInChina() {
        #expect(!CallCoordinator.allowsSystem(inRegion: "CN"))
        #expect(CallCoordinator.allowsSystem(inRegion: "DE"))
        #expect(CallCoordinator.allowsSystem(inRegion: nil))
    }

    @Test func aPushIsPassedOnEvenIfItCannotBeUnderstood() {
        #expect(CallEvent.push(payload: ["callId": "abc", "type": "call"], push: 1) == .push(callID: "abc", push: 1))
        #expect(CallEvent.push(payload: ["callId": 7], push: 2) == .push(callID: "", push: 2))
    }

    @Test func aTokenIsWrittenInHexadecimal() {
        #expect(CallEvent.pushToken(bytes: Data([0, 10, 255])) == .pushToken("000aff"))
    }

    @Test func aPositionWithoutAccuracyIsNone() {
        #expect(DevicePosition(latitude: 52.5, longitude: 13.4, measured: -1) == nil)
        #expect(DevicePosition(latitude: .nan, longitude: 13.4, measured: 10) == nil)
        #expect(DevicePosition(latitude: 52.5, longitude: 13.4, measured: 10)?.accuracy == 10)
    }

    @Test func aDeviceThatDoesNotExistIsMissingUnlessItIsForbidden() {
        for status in [PermissionStatus.notAsked, .allowed, .refused] {
            #expect(status.onDevice(true) == status)
            #expect(status.onDevice(false) == .missing)
        }
        #expect(PermissionStatus.restricted.onDevice(false) == .restricted)
    }

    // MARK: Frames

    @Test func aScreenSendsFifteenFramesInASecond() {
        var pacer = FramePacer(framesPerSecond: FramePacer.screenRate)
        let accepted = (0..<60).filter { pacer.accepts(Int64($0) * 16_666_667) }
        #expect(accepted.count == 15)
        #expect(pacer.accepts(0) == true, "a clock that starts again")
        for time in [Int64.max, .min] { #expect(pacer.accepts(time) == true, "no time is too strange") }
    }

    @Test func aTimeThatIsNoneHasNoNanoseconds() {
        #expect(FramePacer.nanoseconds(1.5) == 1_500_000_000)
        for time in [Double.nan, .infinity, 1e300] { #expect(FramePacer.nanoseconds(time) == nil) }
    }

    @Test func onlyTheNewestValueIsTaken() {
        var values = NewestValue<Int>()
        #expect(values.put(1) == true)
        #expect(values.put(2) == false, "the other thread knows already")
        #expect(values.take() == 2)
        #expect(values.take() == nil)
        #expect(values.put(3) == true)
    }

    @Test func aTurnedPictureIsUpright() {
        let size = PixelSize(width: 640, height: 480)
        #expect(size.turned(by: 180) == size)
        #expect(size.turned(by: 90) == PixelSize(width: 480, height: 640))
        #expect(size.turned(by: 270) == PixelSize(width: 480, height: 640))
        #expect(PixelSize(width: 0, height: 480).aspect == nil)
    }

    // MARK: Statistics

    @Test func theOtherEndSaysWhatWasLostOfWhatIsSent() {
        let report = [
            "out": ReportedStatistics(
                type: "outbound-rtp",
                numbers: [
                    "packetsSent": 10, "framesEncoded": 5, "frameWidth": 640, "frameHeight": 480, "framesPerSecond": 15,
                ],
                texts: [
                    "kind": "video", "mid": "1", "rid": "h", "remoteId": "remote", "qualityLimitationReason": "cpu",
                ]),
            "remote": ReportedStatistics(
                type: "remote-inbound-rtp", numbers: ["packetsLost": 2, "roundTripTime": 0.25], texts: [:]),
            "transport": ReportedStatistics(
                type: "transport", numbers: [:], texts: ["selectedCandidatePairId": "used"]),
            "used": ReportedStatistics(
                type: "candidate-pair", numbers: ["availableOutgoingBitrate": 400_000], texts: [:]),
            "other": ReportedStatistics(
                type: "candidate-pair", numbers: ["availableOutgoingBitrate": 900_000], texts: [:]),
        ]
        var expected = Statistic(.sent, .video, mid: "1", rid: "h")
        (expected.packets, expected.frames, expected.packetsLost) = (10, 5, 2)
        (expected.size, expected.roundTripTime) = (VideoSize(width: 640, height: 480), .milliseconds(250))
        (expected.frameRate, expected.limitation, expected.availableBitrate) = (15, .cpu, 400_000)
        #expect(ReportedStatistics.streams(of: report) == [expected])
    }

    @Test func aReceivedStreamIsReportedHere() {
        let report = [
            "in": ReportedStatistics(
                type: "inbound-rtp", numbers: ["packetsReceived": 7, "packetsLost": -1, "bytesReceived": .infinity],
                texts: ["kind": "audio"])
        ]
        var expected = Statistic(.received, .audio)
        (expected.packets, expected.packetsLost) = (7, -1)
        #expect(ReportedStatistics.streams(of: report) == [expected])
    }

    @Test func aReceivedVideoTellsHowOftenItStoodStill() {
        let report = [
            "in": ReportedStatistics(
                type: "inbound-rtp", numbers: ["freezeCount": 2, "totalFreezesDuration": 0.5], texts: ["kind": "video"])
        ]
        var expected = Statistic(.received, .video)
        (expected.freezes, expected.freezeDuration) = (2, .milliseconds(500))
        #expect(ReportedStatistics.streams(of: report) == [expected])
    }

    @Test func viewsGetOnlyWhatIsNewAboutPictures() {
        var news = FrameSizeChange()
        let (wide, high) = (PixelSize(width: 640, height: 480), PixelSize(width: 480, height: 640))
        #expect(news.shown(wide) == FrameSizeChange.Change(size: wide, isFirst: true))
        #expect(news.shown(wide).isNothing)
        #expect(news.shown(high) == FrameSizeChange.Change(size: high, isFirst: false))
        news.expectFirst()
        #expect(news.shown(high) == FrameSizeChange.Change(size: high, isFirst: true))
    }

    @Test func ofARecordedScreenOnlyPicturesAreSent() {
        var recording = ScreenRecording()
        #expect(recording.received(.picture(seconds: 1)) == .send(1_000_000_000))
        #expect(recording.received(.sound) == .drop)
        #expect(recording.received(.picture(seconds: 1.01)) == .drop, "too early")
        #expect(recording.received(.picture(seconds: .nan)) == .drop)
        recording.isPaused = true
        #expect(recording.received(.picture(seconds: 2)) == .drop)
        recording.isPaused = false
        #expect(recording.received(.picture(seconds: 2)) == .send(2_000_000_000))
        #expect(recording.received(.failure) == .ended)
        #expect(recording.received(.failure) == .drop, "once")
        #expect(recording.received(.picture(seconds: 3)) == .drop)
    }

    @Test(arguments: [
        ("development", true), ("production", false), (nil, false),
    ])
    func thePushServiceIsTheOneThatTheAppWasSignedFor(environment: String?, isSandbox: Bool) throws {
        let entitlements = environment.map { ["aps-environment": $0] } ?? [:]
        let list = try PropertyListSerialization.data(
            fromPropertyList: ["Entitlements": entitlements, "Name": "Confab"], format: .xml, options: 0)
        // The signature is around the list, and has no text.
        let profile = Data([0x30, 0x82, 0, 255]) + list + Data(repeating: 7, count: 300)
        #expect(PushService.isSandbox(profile: profile, isSimulator: false) == isSandbox)
    }

    @Test func withoutAProfileTheAppIsFromTheAppStoreOrInASimulator() {
        #expect(!PushService.isSandbox(profile: nil, isSimulator: false))
        #expect(PushService.isSandbox(profile: nil, isSimulator: true))
        for broken in ["", "<?xml", "</plist>", "</plist><?xml", "<?xml version=\"1.0\"?><plist></plist>"] {
            #expect(!PushService.isSandbox(profile: Data(broken.utf8), isSimulator: false))
        }
    }
}
