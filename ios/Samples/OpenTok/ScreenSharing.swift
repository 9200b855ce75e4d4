import Foundation
import OpenTokShapes
import UIKit

/// Shares the screen in a session that is connected elsewhere.
final class ScreenSharing: UIViewController {
    private var session: OTSession?
    private var publisher: OTPublisher?

    func share(in session: OTSession) {
        self.session = session
        let settings = OTPublisherSettings()
        settings.name = "Screen"
        settings.audioTrack = false
        publisher = OTPublisher(delegate: self, settings: settings)
        publisher?.videoType = .screen
        guard let publisher else { return }
        var error: OTError?
        session.publish(publisher, error: &error)
        if let error { print(error.localizedDescription) }
    }

    override func viewWillDisappear(_ animated: Bool) {
        super.viewWillDisappear(animated)
        if let publisher { session?.unpublish(publisher, error: nil) }
    }
}

extension ScreenSharing: OTPublisherKitDelegate {
    func publisher(_ publisher: OTPublisherKit, didFailWithError error: OTError) {
        let isMedia = OTPublisherErrorCode(rawValue: error.code) == .webRTCError
        print(isMedia ? "The screen cannot be captured" : error.localizedDescription)
    }

    func publisher(_ publisher: OTPublisherKit, streamCreated stream: OTStream) {
        let isScreen = stream.videoType == .screen && stream.hasVideo && !stream.hasAudio
        print("\(stream.name ?? "") \(stream.videoDimensions) \(isScreen)")
    }
}
