import Foundation
import RTC

extension ConfabConfiguration.Media {
    /// Maximum number of media loops: as many as the username fragments of ICE can tell apart.
    public static let maxLoops = ICECredentials.owners.count

    /// The number of media loops on this machine: ``loops``, or one for every two processors.
    var loopCount: Int { loopCount(processors: ProcessInfo.processInfo.activeProcessorCount) }

    /// The number of media loops on a machine with this number of processors. The default leaves processors
    /// for the rest of the server and for the system's network code.
    func loopCount(processors: Int) -> Int { min(max(loops ?? processors / 2, 1), Self.maxLoops) }
}
