// Expect: cannot assign value of type 'Double' to type 'NSNumber'
import Foundation
import WebRTC

func limit(_ encoding: RTCRtpEncodingParameters) {
    encoding.scaleResolutionDownBy = 2.0 as Double
}
