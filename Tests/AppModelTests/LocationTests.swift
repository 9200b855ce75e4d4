import Testing

@testable import AppModel

@Suite struct LocationTests {
    private var machine = LocationMachine()
    private let here = DevicePosition(latitude: 52.5, longitude: 13.4, accuracy: 1000)

    /// Updates run, and the location is or is not known.
    private static func running(isMeasured: Bool) -> LocationMachine {
        var machine = LocationMachine()
        #expect(machine.start(.allowed) == [.startUpdates])
        if isMeasured { _ = machine.measured([DevicePosition(latitude: 1, longitude: 2)]) }
        return machine
    }

    // MARK: The permission

    @Test mutating func twoCallersAreBothAnsweredAfterOneQuestion() {
        #expect(machine.permissionChanged(to: .notAsked).isEmpty, "the system says it at the launch")
        #expect(machine.ask(.notAsked) == [.requestPermission])
        #expect(machine.ask(.notAsked).isEmpty)
        #expect(machine.permissionChanged(to: .notAsked).isEmpty)
        #expect(machine.permissionChanged(to: .allowed) == [.answer(.allowed)])
        #expect(machine.permissionChanged(to: .allowed).isEmpty, "once")
    }

    @Test(arguments: [PermissionStatus.allowed, .refused, .restricted, .missing])
    mutating func aDecidedPermissionIsAnsweredAtOnce(status: PermissionStatus) {
        #expect(machine.ask(status) == [.answer(status)])
    }

    @Test(arguments: [PermissionStatus.refused, .restricted, .notAsked], [true, false])
    func aPermissionThatIsWithdrawnStopsSharing(status: PermissionStatus, isMeasured: Bool) {
        var machine = Self.running(isMeasured: isMeasured)
        #expect(machine.permissionChanged(to: status) == [.stopUpdates, .report(.forbidden(status))])
        #expect(machine.permissionChanged(to: status).isEmpty, "once")
        #expect(machine.measured([here]).isEmpty, "a late position")
        #expect(machine.permissionChanged(to: .allowed).isEmpty, "sharing begins only when the person says so")
    }

    @Test mutating func withoutThePermissionNothingStarts() {
        #expect(machine.start(.refused) == [.report(.forbidden(.refused))])
        #expect(machine.stop().isEmpty)
    }

    // MARK: Positions

    @Test mutating func theNewestValidPositionIsReported() {
        #expect(machine.measured([here]).isEmpty, "nobody wants it")
        _ = machine.start(.allowed)
        #expect(machine.measured([]).isEmpty && machine.measured([nil]).isEmpty)
        let there = DevicePosition(latitude: 1, longitude: 2)
        #expect(machine.measured([there, here, nil]) == [.report(.position(here))])
        #expect(machine.stop() == [.stopUpdates])
        #expect(machine.stop().isEmpty && machine.measured([here]).isEmpty)
    }

    @Test func startingAgainSearchesAnew() {
        var machine = Self.running(isMeasured: false)
        #expect(machine.start(.allowed) == [.stopUpdates, .startUpdates])
    }

    // MARK: Errors

    @Test(arguments: [
        (Int?.some(0), LocationFailure.notYet), (1, .forbidden), (2, .other), (nil, .other), (17, .other),
    ])
    func theSystemsErrorsAreReported(code: Int?, failure: LocationFailure) {
        #expect(LocationFailure(code: code) == failure)
    }

    @Test func aFailureIsReportedOnlyBeforeTheFirstPosition() {
        var machine = Self.running(isMeasured: false)
        #expect(machine.failed(.other, .allowed) == [.report(.unavailable)])
        #expect(machine.measured([here]) == [.report(.position(here))], "the system went on trying")
        #expect(machine.failed(.other, .allowed).isEmpty, "the position is still good enough")
        _ = machine.stop()
        #expect(machine.failed(.other, .allowed).isEmpty)
    }

    @Test func aSearchThatGoesOnIsNotAFailureUntilTheSystemSaysItAgain() {
        var machine = Self.running(isMeasured: false)
        #expect(machine.failed(.notYet, .allowed).isEmpty)
        #expect(machine.failed(.notYet, .allowed) == [.report(.unavailable)])
        #expect(machine.measured([here]) == [.report(.position(here))])
        #expect(machine.failed(.notYet, .allowed).isEmpty)
    }

    @Test(arguments: [
        (PermissionStatus.allowed, PermissionStatus.refused), (.refused, .refused), (.restricted, .restricted),
    ])
    func aForbiddenLocationIsNotAFailedOne(status: PermissionStatus, reported: PermissionStatus) {
        var machine = Self.running(isMeasured: true)
        #expect(machine.failed(.forbidden, status) == [.stopUpdates, .report(.forbidden(reported))])
        #expect(machine.failed(.forbidden, status).isEmpty)
    }
}
