// Expect: risks causing data races
import Foundation
import SwiftUI

final class Camera {
    func start() async {}
}

func start(_ camera: Camera) {
    Task { await camera.start() }
    print(camera)
}
