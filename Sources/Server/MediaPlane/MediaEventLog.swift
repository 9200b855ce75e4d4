import Logging
import Signaling
import Wire

extension MediaEvent {
    /// Logs why a subscriber receives another layer or no video, and how well the server receives a stream. Does not
    /// log other events.
    func log(to logger: Logger) {
        switch self {
        case .subscriptionChanged(let news, let subscriber):
            logger.debug(
                "Subscription changed",
                metadata: [
                    "subscriber": "\(subscriber)", "stream": "\(news.stream)", "paused": "\(news.videoPaused)",
                    "reason": "\(news.reason)", "rid": "\(news.rid ?? "-")",
                    "temporalLayer": "\(news.temporalLayer.map(String.init) ?? "-")",
                    "warning": "\(news.warning.map(String.init) ?? "-")",
                    "limited": "\(news.limited.map(String.init) ?? "-")",
                ])
        case .streamQuality(let quality):
            logger.debug(
                "Stream quality changed",
                metadata: [
                    "stream": "\(quality.stream)", "level": "\(quality.level)",
                    "reason": "\(quality.reason?.rawValue ?? "-")",
                ])
        default: break
        }
    }
}
