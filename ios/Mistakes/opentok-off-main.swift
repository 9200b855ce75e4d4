// Expect: in a synchronous nonisolated context
import OpenTokCompat

func leave(_ session: OTSession) { session.disconnect(nil) }
