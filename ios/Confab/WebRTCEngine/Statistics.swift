import AppModel
import Confab
import Foundation
import WebRTC

extension RTCStatisticsReport {
    var confabStatistics: [Statistic] { ReportedStatistics.streams(of: statistics.mapValues(\.reported)) }
}

extension RTCStatistics {
    fileprivate var reported: ReportedStatistics {
        ReportedStatistics(
            type: type, numbers: values.compactMapValues { ($0 as? NSNumber)?.doubleValue },
            texts: values.mapValues(\.description))
    }
}
