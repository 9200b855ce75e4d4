import AppModel
import CoreLocation
import Foundation

/// Provides the device's location, only as precisely as the server needs it. ``LocationMachine`` decides what to
/// request from the system. It must be created on the main thread, on which Core Location then calls it.
@MainActor final class DeviceLocation: NSObject, Locating {
    private let manager = CLLocationManager()
    private var machine = LocationMachine()
    private var changed: (@MainActor (LocationReport) -> Void)?
    private var asked: [@MainActor (PermissionStatus) -> Void] = []

    override init() {
        super.init()
        manager.desiredAccuracy = kCLLocationAccuracyKilometer
        manager.distanceFilter = DevicePosition.reportedDistance
        manager.delegate = self
    }

    var permission: PermissionStatus {
        switch manager.authorizationStatus {
        case .notDetermined: .notAsked
        case .restricted: .restricted
        case .denied: .refused
        case .authorizedAlways, .authorizedWhenInUse: .allowed
        @unknown default: .refused
        }
    }

    func requestPermission(_ completion: @escaping @MainActor (PermissionStatus) -> Void) {
        asked.append(completion)
        perform(machine.ask(permission))
    }

    func start(_ changed: @escaping @MainActor (LocationReport) -> Void) {
        self.changed = changed
        perform(machine.start(permission))
    }

    func stop() { perform(machine.stop()) }

    private func perform(_ effects: [LocationEffect]) {
        for effect in effects {
            switch effect {
            case .requestPermission: manager.requestWhenInUseAuthorization()
            case .answer(let status):
                let waiting = asked
                asked = []
                for answer in waiting { answer(status) }
            case .startUpdates: manager.startUpdatingLocation()
            case .stopUpdates: manager.stopUpdatingLocation()
            case .report(let report): changed?(report)
            }
        }
    }
}

extension DeviceLocation: @preconcurrency CLLocationManagerDelegate {
    func locationManagerDidChangeAuthorization(_ manager: CLLocationManager) {
        perform(machine.permissionChanged(to: permission))
    }

    func locationManager(_ manager: CLLocationManager, didUpdateLocations locations: [CLLocation]) {
        perform(machine.measured(locations.map { DevicePosition($0) }))
    }

    func locationManager(_ manager: CLLocationManager, didFailWithError error: any Error) {
        perform(machine.failed(LocationFailure(code: (error as? CLError)?.code.rawValue), permission))
    }
}

extension DevicePosition {
    fileprivate init?(_ location: CLLocation) {
        let place = location.coordinate
        self.init(latitude: place.latitude, longitude: place.longitude, measured: location.horizontalAccuracy)
    }
}
